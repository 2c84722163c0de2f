// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"context"

	"github.com/quorumd/quorumd/agent/hooks"
	"github.com/quorumd/quorumd/agent/local"
	"github.com/quorumd/quorumd/agent/policy"
	"github.com/quorumd/quorumd/agent/round"
)

// commandHint is what to do about a command that cannot be run here.
const commandHint = "put the program into commands.d, beside the hooks, on every host, owned by root and writable by " +
	"nobody else"

// unfitFor tells why a command could not be run on this host, or nothing.
func (a *Agent) unfitFor(ctx context.Context, command string) string {
	if a.opt.Hooks == nil {
		return "this agent has no way to run a command"
	}
	if err := local.Within(ctx, func() error { return a.opt.Hooks.Find(command) }); err != nil {
		return err.Error()
	}
	return ""
}

// viewCommand tells how the program is doing that this host is taken down for. As long as the host waits for its turn
// nobody looks: the disk on which the program lies may hang, and the loop with it.
func (a *Agent) viewCommand(ctx context.Context, r *round.Round, k *local.Request) policy.Hooks {
	started := k.Ran == policy.HooksRunning
	switch {
	case k.Ran == policy.HooksDone || k.Ran == policy.HooksFailed:
		return policy.Hooks{State: k.Ran, Text: k.RanText}
	case started && k.RanIn != a.opt.BootID:
		return policy.Hooks{
			State: policy.HooksFailed,
			Text: k.Program +
				": the machine has rebooted since it was started, so nobody knows whether it has ended: see what it " +
				"has done, it is not run again",
		}
	case a.opt.Hooks == nil:
		return policy.Hooks{State: policy.HooksFailed, Text: k.Program + ": this agent has no way to run it"}
	case k.BootID == "" && !started:
		return policy.Hooks{State: policy.HooksDue, Text: k.Program}
	}
	run := k.CommandRun()
	found, err := a.opt.Hooks.State(ctx, run)
	switch {
	// it was killed long ago, if it ever began
	case err != nil && started && r.At > run.Until+a.opt.Config.Maintenance.CommandTimeout+hooks.EndWithin:
		return policy.Hooks{
			State: policy.HooksFailed,
			Text:  k.Program + ": its time is over, and how it went cannot be told: " + err.Error(),
		}
	case err != nil && started: // it may well run
		return policy.Hooks{State: policy.HooksRunning, Text: k.Program + ": " + err.Error()}
	case err != nil:
		return policy.Hooks{State: policy.HooksDue, Text: k.Program + ": " + err.Error()}
	case found.State == hooks.None && started && r.At > run.Until:
		return policy.Hooks{
			State: policy.HooksFailed,
			Text: k.Program +
				": it was started and has not begun: look for the reason with \"journalctl -u 'quorumd*'\"",
		}
	case found.State == hooks.None && started:
		return policy.Hooks{
			State: policy.HooksStarting, Text: k.Program + ": it is being started",
			Launched: a.launchedNow(r, run),
		}
	}
	view := hooksView(found)
	if view.State == policy.HooksRunning {
		view.Text = k.Program + " runs"
	}
	return view
}
