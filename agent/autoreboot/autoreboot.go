// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

// Package autoreboot requests a reboot of this host when its packages need one, at times that the operator allows.
//
// It promises:
//   - It only requests: the policy decides when the host goes down, as for every request.
//   - It requests only inside a window, outside of blackouts, and never against a veto. A request that has not begun is
//     cancelled when its window ends or a veto appears.
//   - Two automatic reboots of a host are at least a day apart, whatever its packages need.
package autoreboot

import (
	"context"
	"log/slog"
	"slices"
	"time"

	"github.com/quorumd/quorumd/agent/control"
)

const (
	// By names the requester.
	By = "trigger"
	// every is the time between two checks, and askEvery between two queries of the package manager.
	every    = time.Minute
	askEvery = 15 * time.Minute
	// within is how long such a reboot may take before an alert fires.
	within = time.Hour
)

// Settings are what the operator allows.
type Settings struct {
	Windows   []Window
	Blackouts []Blackout
}

// sight returns what the settings allow at a time.
func (s Settings) sight(at time.Time) (now candidate) {
	for _, b := range s.Blackouts {
		if b.Contains(at) {
			now.Blackout = b.String()
			break
		}
	}
	now.Open = slices.ContainsFunc(s.Windows, func(w Window) bool { return w.Contains(at) })
	if !now.Open {
		now.Opens = opens(s.Windows, at)
	}
	return now
}

// Trigger checks and requests.
type Trigger struct {
	Host     control.Maintainer
	Settings Settings
	Signs    Signs
	Wall     func() time.Time     // the time of day
	Up       func() time.Duration // since the boot
	Logger   *slog.Logger

	required string
	asked    time.Time // when the package manager was last queried
	logged   string
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
			t.look(ctx)
		}
	}
}

// look acts on the current state.
func (t *Trigger) look(ctx context.Context) {
	now := t.Settings.sight(t.Wall())
	now.Up, now.Required, now.Veto = t.Up(), t.require(ctx), t.Signs.Vetoed()
	if m := t.Host.Status().Maintenance; m != nil {
		now.Asked, now.Own, now.Waiting = true, m.By == By, m.State == control.MaintenanceWaiting
	}
	switch next, why := now.move(); next { //exhaustive:enforce
	case moveCancel:
		if err := t.Host.EndMaintenance(ctx, By); err != nil {
			t.tell(slog.LevelError, "cannot cancel a reboot request that is no longer allowed", err.Error())
			return
		}
		t.tell(slog.LevelInfo, "reboot request cancelled: it did not start in time", why)
	case moveAsk:
		_, err := t.Host.RequestMaintenance(ctx, control.MaintenanceRequest{
			Work: control.WorkReboot, Reason: now.Required,
			For: control.Duration(within),
		}, By)
		if err != nil {
			t.tell(slog.LevelWarn, "reboot required, but the request failed", err.Error())
			return
		}
		t.tell(slog.LevelInfo, "reboot requested", now.Required)
	case moveWait:
		t.tell(slog.LevelInfo, "reboot required; waiting", why)
	case moveNone:
		t.logged = ""
	case movePending:
	}
}

// require caches the answer, because a query may cost many seconds of CPU time.
func (t *Trigger) require(ctx context.Context) string {
	if at := t.Wall(); t.asked.IsZero() || at.Sub(t.asked) >= askEvery || at.Before(t.asked) {
		required, err := t.Signs.Required(ctx)
		if err != nil {
			t.tell(slog.LevelWarn, "cannot check whether a reboot is required", err.Error())
		}
		t.required, t.asked = required, at
	}
	return t.required
}

// tell logs what has changed. Only the text before the first digit is compared, as it may contain a running time.
func (t *Trigger) tell(level slog.Level, message, text string) {
	if logged := message + kind(text); logged != t.logged {
		t.logged = logged
		t.Logger.Log(context.Background(), level, message, "text", text)
	}
}

// kind cuts a text before its first digit.
func kind(text string) string {
	for i, r := range text {
		if r >= '0' && r <= '9' {
			return text[:i]
		}
	}
	return text
}
