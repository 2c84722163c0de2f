// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"context"

	"github.com/quorumd/quorumd/agent/hooks"
	"github.com/quorumd/quorumd/agent/policy"
	"github.com/quorumd/quorumd/agent/round"
)

// Leadership moves etcd's leadership.
type Leadership interface {
	MoveLeader(ctx context.Context, leaderURL string, to uint64) error
}

// Machine is the host itself.
type Machine interface {
	// Reboot asks for an orderly reboot and returns once it is under way.
	Reboot(ctx context.Context) error
}

// Hooks are the operator's own programs that run before etcd is stopped and after it is back. Its
// methods start or look, and never wait for a program.
type Hooks interface {
	Start(ctx context.Context, run hooks.Run) error
	State(ctx context.Context, run hooks.Run) (hooks.Result, error)
	// Find tells why the command of that name could not be run here; nil when it can.
	Find(name string) error
}

// viewHooks makes the view of the hooks of this host's own operation: of those whose time it is.
func (a *Agent) viewHooks(ctx context.Context, r *round.Round) {
	if a.opt.Hooks == nil || r.Request == nil || r.Op == nil || r.Op.Host != a.opt.Config.Host.ID {
		return
	}
	switch policy.OpPhase(r.Op.Phase) {
	case policy.PhaseBegun:
		r.View.Asked.Before = a.hooksState(ctx, r, r.Request.HookRun(hooks.Before))
	case policy.PhaseBack:
		r.View.Asked.After = a.hooksState(ctx, r, r.Request.HookRun(hooks.After))
	}
}

func (a *Agent) hooksState(ctx context.Context, r *round.Round, run hooks.Run) policy.Hooks {
	found, err := a.opt.Hooks.State(ctx, run)
	if err != nil {
		return policy.Hooks{State: policy.HooksFailed, Text: err.Error()}
	}
	view := hooksView(found)
	if view.State == policy.HooksDue && a.launchedNow(r, run) {
		view.Launched, view.Text = true, "they are being started"
	}
	return view
}

// launchedNow tells whether this process has had a run started so short a time ago that it would change nothing to do
// so again: programs are started beside the agent, which sees them only once they have begun. After an interval of the
// loop it may be done again, since what has the programs run may have ended before it told of them.
func (a *Agent) launchedNow(r *round.Round, run hooks.Run) bool {
	return r.Did.Launched.Of == run.ID && r.Did.Launched.Age(r.At) < a.opt.Config.Timing.Interval
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

// viewAsked makes the view of what was asked of this host.
func (a *Agent) viewAsked(ctx context.Context, r *round.Round) {
	asked, _ := a.files.Asked()
	if asked == nil {
		return
	}
	v := &policy.Asked{
		Work: asked.Work, By: asked.By, Reason: asked.Reason, Program: asked.Program, KeepRunning: asked.KeepRunning,
		External: asked.External, Hurried: asked.Hurried,
		Over:  asked.IsOver(a.opt.BootID) || asked.TooLate(a.opt.BootID),
		Ended: asked.Over, TooLate: asked.TooLate(a.opt.BootID), Seen: asked.Seen, Unbegun: asked.BootID == "",
		Rollout: asked.Rollout, Stopped: asked.Stopped, Waived: asked.Waived, Rebooted: asked.Rebooted(a.opt.BootID),
		Overdue: overdue(asked.Until(), r.Wall), RebootFor: r.Did.Rebooted.Age(r.At),
	}
	if asked.Work == policy.WorkCommand {
		v.Command = a.viewCommand(ctx, r, asked)
	}
	v.WaitedFor = a.since.of("asked/"+asked.Since.String(), "", r.At, r.Number)
	r.Request, r.View.Asked = asked, v
}
