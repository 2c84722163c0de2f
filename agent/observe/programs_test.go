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

// fakePrograms simulates programs whose state is always the same.
type fakePrograms struct {
	hooks.Programs

	result hooks.Result
	err    error
}

func (t fakePrograms) State(context.Context, hooks.Run) (hooks.Result, error) { return t.result, t.err }

// observerOf returns an observer that does not evaluate the disk.
func observerOf(opt Options) *Observer {
	return &Observer{opt: opt, view: NewBuilder(opt.Config, opt.BootID, opt.Instance, opt.Programs != nil)}
}

func TestAStartedCommandCountsAsRunningUntilItsEndIsKnown(t *testing.T) {
	t.Parallel()
	const minute = time.Minute
	started := hoststate.Request{
		Request: policy.Request{Ran: policy.HooksRunning}, RanIn: "boot-1", RanAt: minute,
	}
	nothing := hooks.Result{State: hooks.None}
	for name, c := range map[string]struct {
		noted    hoststate.Request
		boot     string
		at       time.Duration
		programs fakePrograms
		want     policy.HookState
		says     string
	}{
		"not started": {
			hoststate.Request{},
			"boot-1", minute,
			fakePrograms{result: nothing},
			policy.HooksDue, "",
		},
		"the program is missing": {
			hoststate.Request{},
			"boot-1", minute,
			fakePrograms{result: hooks.Result{State: hooks.Failed, Hook: "upgrade", Text: "there is none"}},
			policy.HooksFailed,
			"upgrade: there is none",
		},
		"not started, state unreadable": {
			hoststate.Request{},
			"boot-1", minute,
			fakePrograms{err: errors.New("denied")},
			policy.HooksDue, "denied",
		},
		"started, nothing reported yet": {
			started, "boot-1", minute + hooks.BeginWithin,
			fakePrograms{result: nothing},
			policy.HooksStarting, "upgrade",
		},
		"started, and the time limit for a report is over": {
			started, "boot-1", minute + hooks.BeginWithin + 1,
			fakePrograms{result: nothing},
			policy.HooksFailed, "has not started",
		},
		"running": {
			started, "boot-1", 9 * minute,
			fakePrograms{result: hooks.Result{State: hooks.Running, Hook: "upgrade"}},
			policy.HooksRunning, "upgrade runs",
		},
		"started, state unreadable": {
			started, "boot-1", 9 * minute,
			fakePrograms{err: errors.New("denied")},
			policy.HooksRunning, "denied",
		},
		"started, and the time limit including the kill is over": {
			started, "boot-1",
			31*minute + hooks.BeginWithin + hooks.EndWithin + 1,
			fakePrograms{err: errors.New("denied")},
			policy.HooksFailed,
			"denied",
		},
		"done": {
			started, "boot-1", 9 * minute,
			fakePrograms{result: hooks.Result{State: hooks.Done}},
			policy.HooksDone, "",
		},
		"started before a reboot": {
			started, "boot-2", minute,
			fakePrograms{result: nothing},
			policy.HooksFailed, "the machine rebooted",
		},
		"started before a reboot, and a report remained": {
			started, "boot-2", minute,
			fakePrograms{result: hooks.Result{State: hooks.Done}},
			policy.HooksFailed, "is not run again",
		},
		"success recorded before a reboot": {
			hoststate.Request{Request: policy.Request{Ran: policy.HooksDone}, RanIn: "boot-1"},
			"boot-2",
			minute,
			fakePrograms{result: nothing},
			policy.HooksDone, "",
		},
		"failure recorded": {
			hoststate.Request{
				Request: policy.Request{Ran: policy.HooksFailed},
				RanText: "upgrade: exit status 7", RanIn: "boot-1",
			},
			"boot-2", minute,
			fakePrograms{result: nothing},
			policy.HooksFailed, "exit status 7",
		},
	} {
		var conf config.Config
		conf.Maintenance.CommandTimeout = 30 * minute
		o := observerOf(Options{Config: conf, BootID: c.boot, Programs: c.programs})
		k := &c.noted
		k.Work, k.Program, k.Since, k.BootID = policy.WorkCommand, "upgrade", time.Unix(1, 0), "boot-1"
		r := &round.Round{At: c.at, Request: k}
		o.askCommand(t.Context(), r)
		if got := o.view.command(r); got.State != c.want ||
			!strings.Contains(got.Text, c.says) {
			t.Errorf("%s: %+v, want %s with %q", name, got, c.want, c.says)
		}
	}
	r := &round.Round{
		Request: &hoststate.Request{Request: policy.Request{Work: policy.WorkCommand, Program: "upgrade"}},
	}
	o := observerOf(Options{})
	o.askCommand(t.Context(), r)
	if none := o.view.command(r); none.State != policy.HooksFailed {
		t.Errorf("an agent that cannot run it: %+v", none)
	}
}

func TestTheStateOfACommandIsNotReadBeforeItIsStarted(t *testing.T) {
	t.Parallel()
	o := observerOf(Options{BootID: "boot-1", Programs: fakePrograms{err: errors.New("the disk was asked")}})
	r := &round.Round{Request: &hoststate.Request{
		Request: policy.Request{Work: policy.WorkCommand, Program: "upgrade"}, Since: time.Unix(1, 0),
	}}
	o.askCommand(t.Context(), r)
	if got := o.view.command(r); got.State != policy.HooksDue || strings.Contains(got.Text, "asked") {
		t.Errorf("got %+v", got)
	}
}

func TestProgramsThatWereJustStartedAreNotStartedAgainAtOnce(t *testing.T) {
	t.Parallel()
	const interval = 5 * time.Second
	now := time.Minute
	var c config.Config
	c.Host.ID, c.Timing.Interval = "id-n2", interval
	o := observerOf(Options{
		Config: c, BootID: "boot-1", Programs: fakePrograms{result: hooks.Result{State: hooks.None}},
	})
	k := &hoststate.Request{
		Request: policy.Request{Work: policy.WorkCommand, Program: "upgrade", Ran: policy.HooksRunning},
		Since:   time.Unix(1, 0), RanIn: "boot-1", RanAt: now,
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
			t.Errorf("%s: another request: %+v", run.When, got)
		}
	}
}

// observerOfEtcd returns an observer on a host with this version of etcd installed.
func observerOfEtcd(installed *string, now *time.Duration) *Observer {
	var c config.Config
	c.Timing.Interval = time.Second
	return observerOf(Options{
		Config: c, BootID: "boot-1", Programs: fakePrograms{},
		Sources: Sources{EtcdVersion: func(context.Context) (string, error) { return *installed, nil }},
		Now:     func() time.Duration { return *now },
	})
}

func TestTheVersionOfEtcdIsReadAgainAfterACommand(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		installed, now := "3.6.16", time.Hour
		o := observerOfEtcd(&installed, &now)
		look := func(ran policy.HookState, state hooks.State) string {
			now += time.Second
			r := &round.Round{At: now, Request: &hoststate.Request{
				Request: policy.Request{Work: policy.WorkCommand, Program: "upgrade", Ran: ran},
				Since:   time.Unix(1, 0), RanIn: "boot-1", RanAt: now,
			}}
			r.Programs.Command = round.HostState[hooks.Result]{Value: hooks.Result{State: state}, OK: true}
			for range 2 {
				o.askVersion(t.Context(), r)
				synctest.Wait()
			}
			return o.view.View(r, nil).Self.Etcd.String()
		}
		if got := look("", hooks.None); got != "3.6.16" {
			t.Errorf("before the command: etcd %s", got)
		}
		o.ForgetBinary() // as the code that starts the command does
		for _, state := range []hooks.State{hooks.None, hooks.Running} {
			if got := look(policy.HooksRunning, state); got == "3.6.16" {
				t.Errorf("while the command is %q: still etcd %s", state, got)
			}
		}
		installed = "3.5.17"
		if got := look(policy.HooksRunning, hooks.Done); got != installed {
			t.Errorf("after the command: etcd %s, want %s", got, installed)
		}
	})
}

func TestTheVersionOfEtcdIsReadAgainWhenEtcdHasEnded(t *testing.T) {
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
			t.Errorf("version %+v", got)
		}
		installed = "3.5.17" // by a package manager
		if got := look(systemd.Active); got.Value != "3.6.16" {
			t.Errorf("while etcd runs: version %+v", got)
		}
		if got := look(systemd.Failed); got.OK {
			t.Errorf("still the version that ran before: %+v", got)
		}
		if got := look(systemd.Failed); got.Value != installed {
			t.Errorf("version %+v, want %s", got, installed)
		}
	})
}
