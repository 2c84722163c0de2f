// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/quorumd/quorumd/agent/control"
	"github.com/quorumd/quorumd/agent/hooks"
	"github.com/quorumd/quorumd/agent/local"
	"github.com/quorumd/quorumd/agent/policy"
	"github.com/quorumd/quorumd/agent/round"
)

// told is what the side that runs the programs tells.
type told struct {
	result hooks.Result
	err    error
}

func (t told) Start(context.Context, hooks.Run) error { return t.err }

func (t told) State(context.Context, hooks.Run) (hooks.Result, error) { return t.result, t.err }

func (t told) Find(string) error { return t.err }

func TestACommandThatWasStartedIsTakenForOneThatRunsUntilItsEndIsKnown(t *testing.T) {
	t.Parallel()
	const minute = time.Minute
	started := local.ProgramRun{Ran: policy.HooksRunning, RanIn: "boot-1", RanAt: minute}
	nothing := hooks.Result{State: hooks.None}
	for name, c := range map[string]struct {
		noted local.ProgramRun
		boot  string
		at    time.Duration
		told  told
		want  policy.HookState
		says  string
	}{
		"it was not started": {
			local.ProgramRun{},
			"boot-1", minute,
			told{result: nothing},
			policy.HooksDue, "",
		},
		"it is missing": {
			local.ProgramRun{},
			"boot-1", minute,
			told{result: hooks.Result{State: hooks.Failed, Hook: "upgrade", Text: "there is none"}},
			policy.HooksFailed,
			"upgrade: there is none",
		},
		"it was not started, and nobody can look": {
			local.ProgramRun{},
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
			policy.HooksFailed, "has not begun",
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
			policy.HooksFailed, "the machine has rebooted",
		},
		"it has rebooted, and a file has stayed": {
			started, "boot-2", minute,
			told{result: hooks.Result{State: hooks.Done}},
			policy.HooksFailed, "is not run again",
		},
		"its end was noted before the reboot": {
			local.ProgramRun{Ran: policy.HooksDone, RanIn: "boot-1"},
			"boot-2",
			minute,
			told{result: nothing},
			policy.HooksDone, "",
		},
		"its failure was noted": {
			local.ProgramRun{
				Ran:     policy.HooksFailed,
				RanText: "upgrade: exit status 7", RanIn: "boot-1",
			},
			"boot-2", minute,
			told{result: nothing},
			policy.HooksFailed, "exit status 7",
		},
	} {
		a := &Agent{opt: Options{BootID: c.boot, Hooks: c.told}}
		a.opt.Config.Maintenance.CommandTimeout = 30 * minute
		k := &local.Request{
			Work: policy.WorkCommand, Program: "upgrade", Since: time.Unix(1, 0), BootID: "boot-1",
			ProgramRun: c.noted,
		}
		if got := a.viewCommand(t.Context(), &round.Round{At: c.at}, k); got.State != c.want ||
			!strings.Contains(got.Text, c.says) {
			t.Errorf("%s: %+v, want %s with %q", name, got, c.want, c.says)
		}
	}
	none := (&Agent{}).viewCommand(t.Context(), &round.Round{}, &local.Request{Program: "upgrade"})
	if none.State != policy.HooksFailed {
		t.Errorf("an agent without a way to run it: %+v", none)
	}
}

func TestNobodyLooksForTheProgramOfACommandBeforeItsTurn(t *testing.T) {
	t.Parallel()
	a := &Agent{opt: Options{BootID: "boot-1", Hooks: told{err: errors.New("the disk was asked")}}}
	got := a.viewCommand(t.Context(), &round.Round{}, &local.Request{
		Work: policy.WorkCommand, Program: "upgrade",
		Since: time.Unix(1, 0),
	})
	if got.State != policy.HooksDue || strings.Contains(got.Text, "asked") {
		t.Errorf("it is %+v", got)
	}
}

func TestProgramsThatWereStartedJustNowAreWaitedForAndNotStartedAgainAtOnce(t *testing.T) {
	t.Parallel()
	const interval = 5 * time.Second
	now := time.Minute
	a := &Agent{opt: Options{
		BootID: "boot-1", Hooks: told{result: hooks.Result{State: hooks.None}},
		Now: func() time.Duration {
			return now
		},
	}}
	a.opt.Config.Timing.Interval = interval
	k := &local.Request{
		Work: policy.WorkCommand, Program: "upgrade", Since: time.Unix(1, 0),
		ProgramRun: local.ProgramRun{Ran: policy.HooksRunning, RanIn: "boot-1", RanAt: now},
	}
	for run, state := range map[hooks.Run]func(r *round.Round) policy.Hooks{
		k.CommandRun(): func(r *round.Round) policy.Hooks { return a.viewCommand(t.Context(), r, r.Request) },
		k.HookRun(hooks.Before): func(r *round.Round) policy.Hooks {
			return a.hooksState(t.Context(), r, r.Request.HookRun(hooks.Before))
		},
	} {
		r := &round.Round{Request: k, At: now}
		if got := state(r); got.Launched {
			t.Errorf("%s: before it: %+v", run.When, got)
		}
		started := round.Did{Launched: round.Stamp{Is: true, At: now, Of: run.ID}}
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

func TestTheVersionOfEtcdIsLookedAtAnewAfterACommand(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		installed, now := "3.6.16", time.Hour
		k := &local.Request{Work: policy.WorkCommand, Program: "upgrade", Since: time.Unix(1, 0)}
		a := &Agent{opt: Options{
			EtcdVersion: func(context.Context) (string, error) { return installed, nil },
			Now:         func() time.Duration { return now },
		}}
		a.opt.Config.Timing.Interval = time.Second
		look := func(state policy.HookState) string {
			now += time.Second
			r := &round.Round{At: now, Request: k}
			r.View.Asked = &policy.Asked{Work: policy.WorkCommand, Command: policy.Hooks{State: state}}
			for range 2 {
				r.View.Self.Etcd = policy.Version{}
				a.observeVersion(t.Context(), r)
				synctest.Wait()
			}
			return r.View.Self.Etcd.String()
		}
		if got := look(policy.HooksDue); got != "3.6.16" {
			t.Errorf("before it runs etcd is %s", got)
		}
		a.binary.Forget() // as who starts it does
		for _, state := range []policy.HookState{policy.HooksStarting, policy.HooksRunning} {
			if got := look(state); got == "3.6.16" {
				t.Errorf("%s: etcd is still taken for %s", state, got)
			}
		}
		installed = "3.5.17"
		if got := look(policy.HooksDone); got != installed {
			t.Errorf("after it etcd is %s, want %s", got, installed)
		}
	})
}

func TestWhatWasAskedSinceTheRoundIsNotAtWorkWithTheProgramOfTheOneBefore(t *testing.T) {
	t.Parallel()
	a := &Agent{opt: Options{BootID: "boot-1", Wall: time.Now}}
	k := &local.Request{Work: policy.WorkCommand, Program: "upgrade", Since: time.Unix(1, 0)}
	r := &round.Round{Request: k}
	r.View.Cluster.Reachable = true
	r.View.Asked = &policy.Asked{Work: policy.WorkCommand, Command: policy.Hooks{State: policy.HooksRunning}}
	if got := a.maintenanceStatus(r, k).State; got != control.MaintenanceWorking {
		t.Errorf("what runs is %s", got)
	}
	anew := &local.Request{Work: policy.WorkReboot, Since: time.Unix(2, 0)}
	if got := a.maintenanceStatus(r, anew).State; got != control.MaintenanceWaiting {
		t.Errorf("what was asked since is %s", got)
	}
	rebooted := &local.Request{Work: policy.WorkReboot, Since: time.Unix(2, 0), BootID: "boot-0", Stopped: true}
	if got := a.maintenanceStatus(r, rebooted).State; got != control.MaintenanceReturning {
		t.Errorf("what has rebooted is %s", got)
	}
	if a.maintenanceStatus(&round.Round{}, k).State != control.MaintenanceWaiting {
		t.Error("what the round has not seen does not wait")
	}
	if r.View.Asked.Work != policy.WorkCommand || r.View.Asked.Stopped {
		t.Error("the round was changed, which others read")
	}
}

func TestTheStatesOfARequestAreThoseOfTheSocket(t *testing.T) {
	t.Parallel()
	for state, want := range map[policy.RequestState]string{
		policy.RequestWaiting: control.MaintenanceWaiting, policy.RequestStopping: control.MaintenanceStopping,
		policy.RequestSafe: control.MaintenanceSafe, policy.RequestWorking: control.MaintenanceWorking,
		policy.RequestReturning: control.MaintenanceReturning,
	} {
		if string(state) != want {
			t.Errorf("%s is %s there", state, want)
		}
	}
}
