// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

// Package autoreboot asks for this host to be rebooted when its packages want that, at times that the operator allows.
//
// It promises:
//   - It only asks: when it is this host's turn is for the agent to decide, as for everybody who asks. Whether it asks,
//     too, the policy decides: see RebootSight there.
//   - It asks in a window only, on no day of a blackout, and never against a veto. A wish whose turn has not come is
//     taken back when its window ends, or when a veto appears.
//   - Two automatic reboots of a host are at least a day apart, whatever its packages say.
package autoreboot

import (
	"context"
	"log/slog"
	"slices"
	"time"

	"github.com/quorumd/quorumd/agent/control"
	"github.com/quorumd/quorumd/agent/policy"
)

const (
	// By is who has asked.
	By = "trigger"
	// every is the time between two looks, and askEvery between two questions to the package manager.
	every    = time.Minute
	askEvery = 15 * time.Minute
	// within is how long such a reboot may take before it alerts.
	within = time.Hour
)

// Settings are what the operator allows.
type Settings struct {
	Windows   []Window
	Blackouts []Blackout
}

// sight gives what they say of a time.
func (s Settings) sight(at time.Time) (now policy.RebootableHost) {
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

// Host is what a Trigger needs of the agent.
type Host interface {
	// AskMaintenance asks for this host to be taken down.
	AskMaintenance(ctx context.Context, req control.MaintenanceRequest, by string) (control.Maintenance, error)
	// EndMaintenance withdraws that, or brings the host back.
	EndMaintenance(ctx context.Context, by string) error
	// Status gives the newest picture, from memory.
	Status() control.Status
}

// Trigger looks and asks.
type Trigger struct {
	Host     Host
	Settings Settings
	Signs    Signs
	Wall     func() time.Time     // the time of day
	Up       func() time.Duration // since the boot
	Logger   *slog.Logger

	required string
	asked    time.Time // when the package manager was asked last
	told     string
}

// Run looks once a minute until the context ends.
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

// look acts on what is seen now.
func (t *Trigger) look(ctx context.Context) {
	now := t.Settings.sight(t.Wall())
	now.Up, now.Required, now.Veto = t.Up(), t.require(ctx), t.Signs.Vetoed()
	if m := t.Host.Status().Maintenance; m != nil {
		now.Asked, now.Own, now.Waiting = true, m.By == By, m.State == control.MaintenanceWaiting
	}
	switch move, why := now.Move(); move { //exhaustive:enforce
	case policy.RebootWithdraw:
		if err := t.Host.EndMaintenance(ctx, By); err != nil {
			t.tell(slog.LevelError, "cannot cancel a reboot request that is no longer allowed", err.Error())
			return
		}
		t.tell(slog.LevelInfo, "reboot request cancelled: it did not start in time", why)
	case policy.RebootAsk:
		_, err := t.Host.AskMaintenance(ctx, control.MaintenanceRequest{
			Work: control.WorkReboot, Reason: now.Required,
			For: within,
		}, By)
		if err != nil {
			t.tell(slog.LevelWarn, "reboot required, but the request failed", err.Error())
			return
		}
		t.tell(slog.LevelInfo, "reboot requested", now.Required)
	case policy.RebootWait:
		t.tell(slog.LevelInfo, "reboot required; waiting", why)
	case policy.RebootNone:
		t.told = ""
	case policy.RebootBeside:
	}
}

// require keeps the answer for a while, because the question may cost many seconds of a processor.
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

// tell logs what has changed. Of a time that passes, only the beginning of the text is compared.
func (t *Trigger) tell(level slog.Level, message, text string) {
	if told := message + kind(text); told != t.told {
		t.told = told
		t.Logger.Log(context.Background(), level, message, "text", text)
	}
}

// kind cuts a text before its first digit, where something begins that changes by itself.
func kind(text string) string {
	for i, r := range text {
		if r >= '0' && r <= '9' {
			return text[:i]
		}
	}
	return text
}
