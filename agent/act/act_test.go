// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package act

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/quorumd/quorumd/agent/hoststate"
	"github.com/quorumd/quorumd/agent/lock"
	"github.com/quorumd/quorumd/agent/policy"
	"github.com/quorumd/quorumd/agent/round"
)

func TestEveryStepHasExactlyOneImplementation(t *testing.T) {
	t.Parallel()
	ways := map[policy.StepKind]int{}
	for _, w := range New(options(t, hoststate.HostFiles{})).table() {
		ways[w.kind]++
		if w.do == nil {
			t.Errorf("%s does nothing", w.kind)
		}
	}
	for _, info := range policy.Steps() {
		if n := ways[info.Kind]; n != 1 {
			t.Errorf("%s has %d implementations", info.Kind, n)
		}
		if info.Calls <= 0 || info.Doing == "" {
			t.Errorf("%s has no bound or no description: %+v", info.Kind, info)
		}
		delete(ways, info.Kind)
	}
	for kind := range ways {
		t.Errorf("the policy does not know %s", kind)
	}
}

func TestLockedStepDoesNotStartWithoutTheLock(t *testing.T) {
	t.Parallel()
	opt := options(t, hoststate.HostFiles{})
	began := false
	opt.Stepping = func(policy.Step, bool) { began = true }
	a := New(opt)
	for _, info := range policy.Steps() {
		if !info.Locked {
			continue
		}
		done, ended := a.Act(t.Context(), decided(info.Kind, nil))
		if !ended || !errors.Is(done.Err, lock.ErrLost) || !done.Unsaid || began {
			t.Errorf("%s: %+v, %t, begun: %t", info.Kind, done, ended, began)
		}
		if d := a.Did(); d.Failed.Kind != info.Kind || d.Steps != 0 {
			t.Errorf("%s: Did returns %+v", info.Kind, d)
		}
	}
}

func TestStepDoesNotStartFromOldObservations(t *testing.T) {
	t.Parallel()
	opt := options(t, hoststate.HostFiles{})
	unit := &startedUnit{}
	opt.Unit = unit
	a := New(opt)
	r := decided(policy.StepStartUnit, nil)
	r.At -= a.maxAge() + 1
	if done, ended := a.Act(t.Context(), r); ended || unit.starts != 0 {
		t.Errorf("etcd was started %d times; %+v, %t", unit.starts, done, ended)
	}
	r.At++
	if done, ended := a.Act(t.Context(), r); !ended || done.Err != nil || unit.starts != 1 {
		t.Errorf("etcd was started %d times; %+v, %t", unit.starts, done, ended)
	}
}

// slowUnit is a unit whose stop returns when the test allows it.
type slowUnit struct {
	startedUnit
	back chan error
}

func (u *slowUnit) Stop(context.Context) error { return <-u.back }

func TestLateStepIsReportedOnceWithTheRoundThatDecidedIt(t *testing.T) {
	t.Parallel()
	for _, err := range []error{nil, errors.New("no")} {
		synctest.Test(t, func(t *testing.T) {
			opt := options(t, hoststate.HostFiles{})
			unit := &slowUnit{back: make(chan error)}
			opt.Unit = unit
			a := New(opt)
			r := decided(policy.StepStopUnit, nil)
			if done, ended := a.Act(t.Context(), r); ended {
				t.Fatalf("it ended before it returned: %+v", done)
			}
			if d := a.Did(); d.Stuck == "" || d.Steps != 0 {
				t.Errorf("Did returns %+v", d)
			}
			another := decided(policy.StepStartUnit, nil)
			if done, ended := a.Act(t.Context(), another); ended || unit.starts != 0 {
				t.Errorf("another step has started meanwhile: %+v", done)
			}
			unit.back <- err
			synctest.Wait()
			done, ended := a.Act(t.Context(), another)
			if !ended || done.On != r || done.Step.Kind != policy.StepStopUnit || done.Err != err || unit.starts != 0 {
				t.Errorf("the completion is %+v, %t", done, ended)
			}
			if d := a.Did(); d.Stuck != "" || d.Steps != 1 || (d.Failed.Kind != "") != (err != nil) {
				t.Errorf("Did returns %+v", d)
			}
			if done, ended := a.Act(t.Context(), decided(policy.StepNone, nil)); ended {
				t.Errorf("it is reported twice: %+v", done)
			}
		})
	}
}

// guardUnit records, at each start and stop of etcd, whether the start guard is set.
type guardUnit struct {
	startedUnit
	files *hoststate.State
	saw   []bool
}

func (u *guardUnit) look() error {
	held, _ := u.files.StartGuarded()
	u.saw = append(u.saw, held)
	return nil
}

func (u *guardUnit) Start(context.Context) error { return u.look() }
func (u *guardUnit) Stop(context.Context) error  { return u.look() }

func TestStartGuardIsSetBeforeEtcdIsTouched(t *testing.T) {
	t.Parallel()
	opt := options(t, hoststate.HostFiles{})
	unit := &guardUnit{files: opt.Files}
	opt.Unit = unit
	a := New(opt)
	for _, c := range []struct {
		kind  policy.StepKind
		guard policy.StartGuard
		want  bool
	}{
		{policy.StepStopForRecovery, policy.GuardSet, true},
		{policy.StepStopUnit, policy.GuardUnchanged, true},
		{policy.StepStartUnit, policy.GuardUnchanged, true},
		{policy.StepStartUnit, policy.GuardCleared, false},
		{policy.StepStopUnit, policy.GuardUnchanged, false},
	} {
		r := decided(c.kind, nil)
		r.Decision.Step.Guard = c.guard
		if done, ended := a.Act(t.Context(), r); !ended || done.Err != nil {
			t.Fatalf("%s: %+v, %t", c.kind, done, ended)
		}
		if saw := unit.saw[len(unit.saw)-1]; saw != c.want {
			t.Errorf("%s with %d: etcd is held back then: %t", c.kind, c.guard, saw)
		}
	}
}

func TestWrittenEnvironmentIsRemembered(t *testing.T) {
	t.Parallel()
	opt := options(t, hoststate.HostFiles{})
	unit := &startedUnit{err: errors.New("no")}
	opt.Unit = unit
	a := New(opt)
	r := decided(policy.StepWriteEnv, nil)
	r.Environment = map[string]string{"ETCD_NAME": "n2"}
	a.Act(t.Context(), r)
	if got := a.Did().Environment; got != nil {
		t.Errorf("the environment could not be written, but Did returns %v", got)
	}
	unit.err = nil
	a.Act(t.Context(), r)
	if got := a.Did().Environment; got["ETCD_NAME"] != "n2" {
		t.Errorf("written is %v", got)
	}
}

func TestStepIsTimestampedAtItsStart(t *testing.T) {
	t.Parallel()
	for kind, stamp := range map[policy.StepKind]func(round.ActorState) round.Stamp{
		policy.StepStartUnit: func(d round.ActorState) round.Stamp { return d.Started },
		policy.StepPromote:   func(d round.ActorState) round.Stamp { return d.Promoted },
		policy.StepReboot:    func(d round.ActorState) round.Stamp { return d.Rebooted },
	} {
		a := New(options(t, hoststate.HostFiles{}))
		if age := stamp(a.Did()).Age(testNow); age != policy.Never {
			t.Errorf("%s: done %s ago, want never", kind, age)
		}
		a.ways[kind].begins(nil)
		if age := stamp(a.Did()).Age(testNow + time.Minute); age != time.Minute {
			t.Errorf("%s: done %s ago, want 1m", kind, age)
		}
	}
}
