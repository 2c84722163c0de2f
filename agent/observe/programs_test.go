// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/quorumd/quorumd/agent/config"
	"github.com/quorumd/quorumd/agent/hooks"
	"github.com/quorumd/quorumd/agent/hoststate"
	"github.com/quorumd/quorumd/agent/policy"
	"github.com/quorumd/quorumd/agent/record"
	"github.com/quorumd/quorumd/agent/round"
	"github.com/quorumd/quorumd/systemd"
)

// told is what the side that runs the programs tells.
type told struct {
	result hooks.Result
	err    error
}

func (t told) State(context.Context, hooks.Run) (hooks.Result, error) { return t.result, t.err }

// observerOf gives an observer that judges no disk.
func observerOf(opt Options) *Observer {
	return &Observer{opt: opt, view: NewBuilder(opt.Config, opt.BootID, opt.Instance, opt.Programs != nil)}
}

func TestACommandThatWasStartedIsTakenForOneThatRunsUntilItsEndIsKnown(t *testing.T) {
	t.Parallel()
	const minute = time.Minute
	started := hoststate.ProgramRun{Ran: policy.HooksRunning, RanIn: "boot-1", RanAt: minute}
	nothing := hooks.Result{State: hooks.None}
	for name, c := range map[string]struct {
		noted hoststate.ProgramRun
		boot  string
		at    time.Duration
		told  told
		want  policy.HookState
		says  string
	}{
		"it was not started": {
			hoststate.ProgramRun{},
			"boot-1", minute,
			told{result: nothing},
			policy.HooksDue, "",
		},
		"it is missing": {
			hoststate.ProgramRun{},
			"boot-1", minute,
			told{result: hooks.Result{State: hooks.Failed, Hook: "upgrade", Text: "there is none"}},
			policy.HooksFailed,
			"upgrade: there is none",
		},
		"it was not started, and nobody can look": {
			hoststate.ProgramRun{},
			"boot-1", minute,
			told{err: errors.New("denied")},
			policy.HooksDue, "denied",
		},
		"it was started and has told nothing": {
			started, "boot-1", minute + hooks.BeginWithin,
			told{result: nothing},
			policy.HooksStarting, "upgrade",
		},
		"and does not begin any more": {
			started, "boot-1", minute + hooks.BeginWithin + 1,
			told{result: nothing},
			policy.HooksFailed, "has not started",
		},
		"it runs": {
			started, "boot-1", 9 * minute,
			told{result: hooks.Result{State: hooks.Running, Hook: "upgrade"}},
			policy.HooksRunning, "upgrade runs",
		},
		"it was started, and nobody can look": {
			started, "boot-1", 9 * minute,
			told{err: errors.New("denied")},
			policy.HooksRunning, "denied",
		},
		"and its time is over, kill and all": {
			started, "boot-1",
			31*minute + hooks.BeginWithin + hooks.EndWithin + 1,
			told{err: errors.New("denied")},
			policy.HooksFailed,
			"denied",
		},
		"it is done": {
			started, "boot-1", 9 * minute,
			told{result: hooks.Result{State: hooks.Done}},
			policy.HooksDone, "",
		},
		"the machine has rebooted": {
			started, "boot-2", minute,
			told{result: nothing},
			policy.HooksFailed, "the machine rebooted",
		},
		"it has rebooted, and a file has stayed": {
			started, "boot-2", minute,
			told{result: hooks.Result{State: hooks.Done}},
			policy.HooksFailed, "is not run again",
		},
		"its end was noted before the reboot": {
			hoststate.ProgramRun{Ran: policy.HooksDone, RanIn: "boot-1"},
			"boot-2",
			minute,
			told{result: nothing},
			policy.HooksDone, "",
		},
		"its failure was noted": {
			hoststate.ProgramRun{
				Ran:     policy.HooksFailed,
				RanText: "upgrade: exit status 7", RanIn: "boot-1",
			},
			"boot-2", minute,
			told{result: nothing},
			policy.HooksFailed, "exit status 7",
		},
	} {
		var conf config.Config
		conf.Maintenance.CommandTimeout = 30 * minute
		o := observerOf(Options{Config: conf, BootID: c.boot, Programs: c.told})
		k := &hoststate.Request{
			Work: policy.WorkCommand, Program: "upgrade", Since: time.Unix(1, 0), BootID: "boot-1",
			ProgramRun: c.noted,
		}
		r := &round.Round{At: c.at, Request: k}
		o.askCommand(t.Context(), r)
		if got := o.view.command(r); got.State != c.want ||
			!strings.Contains(got.Text, c.says) {
			t.Errorf("%s: %+v, want %s with %q", name, got, c.want, c.says)
		}
	}
	r := &round.Round{Request: &hoststate.Request{Work: policy.WorkCommand, Program: "upgrade"}}
	o := observerOf(Options{})
	o.askCommand(t.Context(), r)
	if none := o.view.command(r); none.State != policy.HooksFailed {
		t.Errorf("an agent without a way to run it: %+v", none)
	}
}

func TestNobodyLooksForTheProgramOfACommandBeforeItsTurn(t *testing.T) {
	t.Parallel()
	o := observerOf(Options{BootID: "boot-1", Programs: told{err: errors.New("the disk was asked")}})
	r := &round.Round{Request: &hoststate.Request{
		Work: policy.WorkCommand, Program: "upgrade", Since: time.Unix(1, 0),
	}}
	o.askCommand(t.Context(), r)
	if got := o.view.command(r); got.State != policy.HooksDue || strings.Contains(got.Text, "asked") {
		t.Errorf("it is %+v", got)
	}
}

func TestProgramsThatWereStartedJustNowAreWaitedForAndNotStartedAgainAtOnce(t *testing.T) {
	t.Parallel()
	const interval = 5 * time.Second
	now := time.Minute
	var c config.Config
	c.Host.ID, c.Timing.Interval = "id-n2", interval
	o := observerOf(Options{
		Config: c, BootID: "boot-1", Programs: told{result: hooks.Result{State: hooks.None}},
	})
	k := &hoststate.Request{
		Work: policy.WorkCommand, Program: "upgrade", Since: time.Unix(1, 0),
		ProgramRun: hoststate.ProgramRun{Ran: policy.HooksRunning, RanIn: "boot-1", RanAt: now},
	}
	for run, state := range map[hooks.Run]func(r *round.Round) policy.Hooks{
		k.CommandRun(): func(r *round.Round) policy.Hooks {
			o.askCommand(t.Context(), r)
			return o.view.command(r)
		},
		k.HookRun(hooks.Before): func(r *round.Round) policy.Hooks {
			r.Op = &record.Op{Host: "id-n2", Phase: string(policy.PhaseBegun)}
			o.askHooks(t.Context(), r)
			return o.view.asked(r).Before
		},
	} {
		r := &round.Round{Request: k, At: now}
		if got := state(r); got.Launched {
			t.Errorf("%s: before it: %+v", run.When, got)
		}
		started := round.ActorState{Launched: round.Stamp{Is: true, At: now, Of: run.ID}}
		r.Did = started
		if got := state(r); !got.Launched || got.Text == "" {
			t.Errorf("%s: after it: %+v", run.When, got)
		}
		if got := state(&round.Round{Request: k, At: now + interval, Did: started}); got.Launched {
			t.Errorf("%s: an interval later: %+v", run.When, got)
		}
		another := *k
		another.Since = time.Unix(2, 0)
		if got := state(&round.Round{Request: &another, At: now, Did: started}); got.Launched {
			t.Errorf("%s: what is asked anew: %+v", run.When, got)
		}
	}
}

// observerOfEtcd gives an observer of a host on which that version of etcd is installed.
func observerOfEtcd(installed *string, now *time.Duration) *Observer {
	var c config.Config
	c.Timing.Interval = time.Second
	return observerOf(Options{
		Config: c, BootID: "boot-1", Programs: told{},
		EtcdVersion: func(context.Context) (string, error) { return *installed, nil },
		Now:         func() time.Duration { return *now },
	})
}

func TestTheVersionOfEtcdIsLookedAtAnewAfterACommand(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		installed, now := "3.6.16", time.Hour
		o := observerOfEtcd(&installed, &now)
		look := func(ran policy.HookState, state hooks.State) string {
			now += time.Second
			r := &round.Round{At: now, Request: &hoststate.Request{
				Work: policy.WorkCommand, Program: "upgrade", Since: time.Unix(1, 0),
				ProgramRun: hoststate.ProgramRun{Ran: ran, RanIn: "boot-1", RanAt: now},
			}}
			r.Programs.Command = round.HostState[hooks.Result]{Value: hooks.Result{State: state}, OK: true}
			for range 2 {
				o.askVersion(t.Context(), r)
				synctest.Wait()
			}
			return o.view.View(r, nil).Self.Etcd.String()
		}
		if got := look("", hooks.None); got != "3.6.16" {
			t.Errorf("before it runs etcd is %s", got)
		}
		o.ForgetBinary() // as who starts it does
		for _, state := range []hooks.State{hooks.None, hooks.Running} {
			if got := look(policy.HooksRunning, state); got == "3.6.16" {
				t.Errorf("while its run is %q etcd is still taken for %s", state, got)
			}
		}
		installed = "3.5.17"
		if got := look(policy.HooksRunning, hooks.Done); got != installed {
			t.Errorf("after it etcd is %s, want %s", got, installed)
		}
	})
}

func TestTheVersionOfEtcdIsLookedAtAnewWhenEtcdHasEnded(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		installed, now := "3.6.16", time.Hour
		o := observerOfEtcd(&installed, &now)
		look := func(state systemd.State) round.HostState[string] {
			now += time.Second
			r := &round.Round{At: now}
			r.Unit.LoadState, r.Unit.State = "loaded", state
			o.askVersion(t.Context(), r)
			synctest.Wait()
			o.before = r
			return r.Binary
		}
		look(systemd.Active)
		if got := look(systemd.Active); got.Value != "3.6.16" {
			t.Errorf("the version is %+v", got)
		}
		installed = "3.5.17" // by an upgrade of the package
		if got := look(systemd.Active); got.Value != "3.6.16" {
			t.Errorf("while etcd runs the version is %+v", got)
		}
		if got := look(systemd.Failed); got.OK {
			t.Errorf("what is started next is taken for what ran before: %+v", got)
		}
		if got := look(systemd.Failed); got.Value != installed {
			t.Errorf("the version is %+v, want %s", got, installed)
		}
	})
}
