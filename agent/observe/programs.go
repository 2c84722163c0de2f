// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"context"

	"github.com/quorumd/quorumd/agent/hooks"
	"github.com/quorumd/quorumd/agent/policy"
	"github.com/quorumd/quorumd/agent/round"
)

// askCommand reads the state of the command or defragmentation for which this host is in maintenance, if there is one.
func (o *Observer) askCommand(ctx context.Context, r *round.Round) {
	if r.Request == nil || !r.Request.Work.RunsJob() {
		return
	}
	if _, settled := o.view.program(r).KnownState(); !settled {
		r.Programs.Command = o.askProgram(ctx, r.Request.CommandRun())
	}
}

// askHooks reads the state of the hooks of this host's own operation that are due.
func (o *Observer) askHooks(ctx context.Context, r *round.Round) {
	r.Programs.Before, r.Programs.After = round.HostState[hooks.Result]{}, round.HostState[hooks.Result]{}
	if o.opt.Programs == nil || r.Request == nil || r.Op == nil || r.Op.Host != o.opt.Config.Host.ID {
		return
	}
	switch policy.HooksIn(policy.OpPhase(r.Op.Phase)) { //exhaustive:enforce
	case policy.HooksNever:
	case policy.HooksBefore:
		r.Programs.Before = o.askProgram(ctx, r.Request.HookRun(hooks.Before))
	case policy.HooksAfter:
		r.Programs.After = o.askProgram(ctx, r.Request.HookRun(hooks.After))
	}
}

func (o *Observer) askProgram(ctx context.Context, run hooks.Run) round.HostState[hooks.Result] {
	result, err := o.opt.Programs.State(ctx, run)
	return round.HostState[hooks.Result]{Value: result, Err: err, OK: err == nil}
}

// hooks returns the state of the hooks of a phase, if it was read.
func (b *Builder) hooks(r *round.Round, found round.HostState[hooks.Result], when string) policy.Hooks {
	switch {
	case found.Err != nil:
		return policy.Hooks{State: policy.HooksFailed, Text: found.Err.Error()}
	case !found.OK:
		return policy.Hooks{}
	}
	view := hooksView(found.Value)
	if view.State == policy.HooksDue && b.launchedNow(r, r.Request.HookRun(when)) {
		view.Launched, view.Text = true, "the hooks are being started"
	}
	return view
}

// launchedNow reports whether this agent started a run so recently that it may not be observable yet. Programs run
// outside the agent, which observes them only after they have begun. After one interval of the loop the agent may start
// the run again, because the process that runs the programs may have ended before it reported them.
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

// command returns the state of the command or defragmentation for which this host is in maintenance, if there is one.
func (b *Builder) command(r *round.Round) policy.Hooks {
	if r.Request == nil || !r.Request.Work.RunsJob() {
		return policy.Hooks{}
	}
	return b.program(r).State()
}

// program returns what is known about the program of the requested command, or about the requested defragmentation.
func (b *Builder) program(r *round.Round) policy.Program {
	k, found := r.Request, r.Programs.Command
	run := k.CommandRun()
	p := policy.Program{
		Name: k.Job(), Recorded: k.Ran, RecordedText: k.RanText,
		OtherBoot: k.RanIn != b.bootID, CanRun: b.programs,
		Begun: k.BootID != "", Observed: hooksView(found.Value), StartTimedOut: r.At > run.Until,
		TimedOut: r.At > run.Until+b.config.Maintenance.CommandTimeout+hooks.EndWithin,
		Launched: b.launchedNow(r, run),
	}
	if found.Err != nil {
		p.Unobserved = found.Err.Error()
	}
	return p
}
