// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

// Package autoreboot requests a reboot of this host when its packages require one, at times that the operator allows.
//
// It promises:
//   - It only requests a reboot. The policy decides when it begins, as for every request.
//   - It requests a reboot only inside a window, outside of blackouts and without a veto. Until the operation begins,
//     it cancels its request if one of these conditions no longer holds or the reboot is no longer required.
//   - An automatic reboot begins at least a day after the previous boot.
package autoreboot

import (
	"context"
	"log/slog"
	"time"

	"github.com/quorumd/quorumd/agent/control"
	"github.com/quorumd/quorumd/agent/policy"
	"github.com/quorumd/quorumd/agent/window"
)

const (
	// By is the requester's name in automatic reboot requests.
	By = "trigger"
	// every is the interval of the checks, and queryEvery the interval of queries to the package manager.
	every      = time.Minute
	queryEvery = 15 * time.Minute
	// alertAfter is how long the maintenance for a reboot may take before an alert fires.
	alertAfter = time.Hour
)

// Trigger requests a reboot when one is required and allowed, and cancels the request when that changes.
type Trigger struct {
	Host       control.Maintainer
	Times      window.Times // when reboots are allowed
	Indicators Indicators
	Wall       func() time.Time     // the time of day
	Up         func() time.Duration // time since boot
	Logger     *slog.Logger

	required  string
	queriedAt time.Time // when the package manager was last queried
	logged    string
}

// Run checks once a minute until the context ends.
func (t *Trigger) Run(ctx context.Context) {
	ticker := time.NewTicker(every)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
			t.check(ctx)
		}
	}
}

// check requests or cancels a reboot, depending on the current state.
func (t *Trigger) check(ctx context.Context) {
	now := candidate{Shut: t.Times.ShutUntil(t.Wall())}
	now.Up, now.Required, now.Veto = t.Up(), t.whyRequired(ctx), t.Indicators.Vetoed()
	if m := t.Host.Status().Maintenance; m != nil {
		now.Asked, now.Own, now.Waiting = true, m.By == By, m.State == policy.RequestWaiting
	}
	switch next, why := now.decide(); next { //exhaustive:enforce
	case actionCancel:
		if err := t.Host.EndMaintenance(ctx, By); err != nil {
			t.log(slog.LevelError, "cannot cancel the reboot request", err.Error())
			return
		}
		t.log(slog.LevelInfo, "reboot request cancelled", why)
	case actionRequest:
		_, err := t.Host.RequestMaintenance(ctx, control.MaintenanceRequest{
			Work: policy.WorkReboot, Reason: now.Required,
			For: control.Duration(alertAfter),
		}, By)
		if err != nil {
			t.log(slog.LevelWarn, "reboot required, but the request failed", err.Error())
			return
		}
		t.log(slog.LevelInfo, "reboot requested", now.Required)
	case actionWait:
		t.log(slog.LevelInfo, "reboot required; waiting", why)
	case actionNone:
		t.logged = ""
	case actionPending:
	}
}

// whyRequired returns why a reboot is required, or "". It caches the result, because a query may cost many seconds of
// CPU time.
func (t *Trigger) whyRequired(ctx context.Context) string {
	if at := t.Wall(); t.queriedAt.IsZero() || at.Sub(t.queriedAt) >= queryEvery || at.Before(t.queriedAt) {
		required, err := t.Indicators.Required(ctx)
		if err != nil {
			t.log(slog.LevelWarn, "automatic reboots are suspended", err.Error())
		}
		t.required, t.queriedAt = required, at
	}
	return t.required
}

// log writes a line unless it repeats the previous one. It ignores changes after the first digit, because the text may
// contain a duration.
func (t *Trigger) log(level slog.Level, message, text string) {
	if logged := message + beforeDigit(text); logged != t.logged {
		t.logged = logged
		t.Logger.Log(context.Background(), level, message, "text", text)
	}
}

func beforeDigit(text string) string {
	for i, r := range text {
		if r >= '0' && r <= '9' {
			return text[:i]
		}
	}
	return text
}
