// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"context"

	"github.com/quorumd/quorumd/agent/hooks"
	"github.com/quorumd/quorumd/agent/policy"
	"github.com/quorumd/quorumd/agent/round"
)

// askCommand looks how the program is doing that this host is taken down for. As long as the host waits for its turn
// nobody looks: the disk on which the program lies may hang, and the loop with it.
func (o *Observer) askCommand(ctx context.Context, r *round.Round) {
	if r.Request == nil || !r.Request.Work.RunsProgram() {
		return
	}
	if _, settled := o.view.unasked(r); !settled {
		r.Programs.Command = o.askProgram(ctx, r.Request.CommandRun())
	}
}

// askHooks looks at the hooks of this host's own operation: at those whose time it is.
func (o *Observer) askHooks(ctx context.Context, r *round.Round) {
	r.Programs.Before, r.Programs.After = round.Found[hooks.Result]{}, round.Found[hooks.Result]{}
	if o.opt.Programs == nil || r.Request == nil || r.Op == nil || r.Op.Host != o.opt.Config.Host.ID {
		return
	}
	switch policy.OpPhase(r.Op.Phase) {
	case policy.PhaseBegun:
		r.Programs.Before = o.askProgram(ctx, r.Request.HookRun(hooks.Before))
	case policy.PhaseBack:
		r.Programs.After = o.askProgram(ctx, r.Request.HookRun(hooks.After))
	}
}

func (o *Observer) askProgram(ctx context.Context, run hooks.Run) round.Found[hooks.Result] {
	result, err := o.opt.Programs.State(ctx, run)
	return round.Found[hooks.Result]{Value: result, Err: err, OK: err == nil}
}

// hooks gives how a run of hooks goes, if it was looked at.
func (b *Builder) hooks(r *round.Round, found round.Found[hooks.Result], when string) policy.Hooks {
	switch {
	case found.Err != nil:
		return policy.Hooks{State: policy.HooksFailed, Text: found.Err.Error()}
	case !found.OK:
		return policy.Hooks{}
	}
	view := hooksView(found.Value)
	if view.State == policy.HooksDue && b.launchedNow(r, r.Request.HookRun(when)) {
		view.Launched, view.Text = true, "they are being started"
	}
	return view
}

// launchedNow tells whether this process has had a run started so short a time ago that it would change nothing to do
// so again: programs are started beside the agent, which sees them only once they have begun. After an interval of the
// loop it may be done again, since what has the programs run may have ended before it told of them.
func (b *Builder) launchedNow(r *round.Round, run hooks.Run) bool {
	return r.Did.Launched.Of == run.ID && r.Did.Launched.Age(r.At) < b.config.Timing.Interval
}

func hooksView(found hooks.Result) policy.Hooks {
	out := policy.Hooks{State: policy.HooksDue, Text: found.Hook}
	if found.Text != "" {
		out.Text += ": " + found.Text
	}
	switch found.State { //exhaustive:enforce
	case hooks.Running:
		out.State = policy.HooksRunning
	case hooks.Done:
		out.State = policy.HooksDone
	case hooks.Failed:
		out.State = policy.HooksFailed
	case hooks.None:
	}
	return out
}

// unasked gives how the program of a command is doing where nobody has to look for that.
func (b *Builder) unasked(r *round.Round) (policy.Hooks, bool) {
	k := r.Request
	started := k.Ran == policy.HooksRunning
	switch {
	case k.Ran == policy.HooksDone || k.Ran == policy.HooksFailed:
		return policy.Hooks{State: k.Ran, Text: k.RanText}, true
	case started && k.RanIn != b.bootID:
		return policy.Hooks{
			State: policy.HooksFailed,
			Text: k.Program +
				": the machine has rebooted since it was started, so nobody knows whether it has ended: see what it " +
				"has done, it is not run again",
		}, true
	case !b.programs:
		return policy.Hooks{State: policy.HooksFailed, Text: k.Program + ": this agent has no way to run it"}, true
	case k.BootID == "" && !started:
		return policy.Hooks{State: policy.HooksDue, Text: k.Program}, true
	}
	return policy.Hooks{}, false
}

// command tells how the program is doing that this host is taken down for.
func (b *Builder) command(r *round.Round) policy.Hooks {
	k := r.Request
	if k == nil || !k.Work.RunsProgram() {
		return policy.Hooks{}
	}
	if settled, ok := b.unasked(r); ok {
		return settled
	}
	started := k.Ran == policy.HooksRunning
	run := k.CommandRun()
	found, err := r.Programs.Command.Value, r.Programs.Command.Err
	switch {
	// it was killed long ago, if it ever began
	case err != nil && started && r.At > run.Until+b.config.Maintenance.CommandTimeout+hooks.EndWithin:
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
			Launched: b.launchedNow(r, run),
		}
	}
	view := hooksView(found)
	if view.State == policy.HooksRunning {
		view.Text = k.Program + " runs"
	}
	return view
}
