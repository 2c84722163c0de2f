// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

// Package trigger asks for this host to be rebooted when its packages want that, at times that the operator allows.
//
// It promises:
//   - It only asks: when it is this host's turn is for the agent to decide, as for everybody who asks.
//   - It asks in a window only, on no day of a blackout, and never against a veto. A wish whose turn has not come is
//     taken back when its window ends, or when a veto appears.
//   - Two automatic reboots of a host are at least a day apart, whatever its packages say.
package trigger

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/quorumd/quorumd/agent/control"
)

const (
	// By is who has asked.
	By = "trigger"
	// apart is the least time between two boots, if the second is ours.
	apart = 24 * time.Hour
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

// Sight is what is seen in one moment.
type Sight struct {
	At       time.Time
	Up       time.Duration // since the boot
	Required string        // why a reboot is wanted; empty: it is not
	Veto     string        // who is against it and why; empty: nobody
}

// Decide tells whether to ask for a reboot now, and if not, why not; with nothing to do the text is empty.
func Decide(s Settings, now Sight) (ask bool, why string) {
	if now.Required == "" {
		return false, ""
	}
	if now.Veto != "" {
		return false, "there is a veto: " + now.Veto
	}
	if now.Up < apart {
		return false, fmt.Sprintf("the machine was booted %s ago; automatic reboots are at least a day apart",
			now.Up.Round(time.Minute))
	}
	for _, b := range s.Blackouts {
		if b.Contains(now.At) {
			return false, "there is a blackout: " + b.String()
		}
	}
	for _, w := range s.Windows {
		if w.Contains(now.At) {
			return true, ""
		}
	}
	if next := opens(s.Windows, now.At); !next.IsZero() {
		return false, "the next window opens " + next.Format("Mon 2006-01-02 15:04 MST")
	}
	return false, "no window is open"
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
	now := Sight{At: t.Wall(), Up: t.Up(), Required: t.require(ctx), Veto: t.Signs.Vetoed()}
	ask, why := Decide(t.Settings, now)
	m := t.Host.Status().Maintenance
	switch {
	case m != nil && m.By == By && !ask && m.State == control.MaintenanceWaiting:
		if err := t.Host.EndMaintenance(ctx, By); err != nil {
			t.tell(slog.LevelError, "a reboot that is not allowed any more is not withdrawn", err.Error())
			return
		}
		t.tell(slog.LevelInfo, "the wish for a reboot is withdrawn: its turn did not come in time", why)
	case m != nil: // it is on its way, or something else is
	case ask:
		_, err := t.Host.AskMaintenance(ctx, control.MaintenanceRequest{
			Work: control.WorkReboot, Reason: now.Required,
			For: within,
		}, By)
		if err != nil {
			t.tell(slog.LevelWarn, "a reboot is required, and cannot be asked for", err.Error())
			return
		}
		t.tell(slog.LevelInfo, "asked for a reboot", now.Required)
	case why != "":
		t.tell(slog.LevelInfo, "a reboot is required, and waits", why)
	default:
		t.told = ""
	}
}

// require keeps the answer for a while, because the question may cost many seconds of a processor.
func (t *Trigger) require(ctx context.Context) string {
	if at := t.Wall(); t.asked.IsZero() || at.Sub(t.asked) >= askEvery || at.Before(t.asked) {
		required, err := t.Signs.Required(ctx)
		if err != nil {
			t.tell(slog.LevelWarn, "automatic reboots", err.Error())
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
