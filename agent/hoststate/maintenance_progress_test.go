// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package hoststate

import (
	"testing"
	"time"

	"github.com/quorumd/quorumd/agent/policy"
	"github.com/quorumd/quorumd/agent/record"
)

// asked opens a new state directory with the request k, or without a request if k is nil.
func asked(t *testing.T, k *Request) *State {
	t.Helper()
	dir := t.TempDir()
	f, err := Open(HostFiles{}, dir+"/state", dir+"/run", nil)
	must(t, err)
	if k != nil {
		must(t, f.TakeTurn(k))
	}
	return f
}

// is fails the test unless the current request equals want, in memory and after a restart of the agent.
func is(t *testing.T, f *State, want Request) {
	t.Helper()
	again, err := Open(f.disk, f.state, f.runtime, nil)
	must(t, err)
	for who, f := range map[string]*State{"this agent": f, "the next one": again} {
		if now, _ := f.Asked(); now == nil || *now != want {
			t.Errorf("to %s the request is %+v, want %+v", who, now, want)
		}
	}
}

func TestTheProgressOfAnOperationIsRecorded(t *testing.T) {
	t.Parallel()
	k := Request{Request: policy.Request{Work: policy.WorkRestart}, Since: time.Unix(1, 0).UTC()}
	f, want := asked(t, &k), k
	began := time.Unix(2, 0)
	got, err := f.BeginOperation(Beginning{BootID: "boot-1", At: began, Clock: time.Minute, Cluster: 7})
	must(t, err)
	want.BootID, want.Began, want.Clock, want.Cluster = "boot-1", began.UTC(), time.Minute, 7
	if *got != want {
		t.Errorf("the request after the beginning is %+v, want %+v", got, want)
	}
	is(t, f, want)
	must(t, f.OperationRecorded())
	want.Seen = true
	is(t, f, want)
	if inForce, err := f.EtcdStopped(&k); err != nil || !inForce {
		t.Errorf("in force: %t, %v", inForce, err)
	}
	want.Stopped = true
	is(t, f, want)
	must(t, f.EtcdStarted())
	want.Stopped = false
	is(t, f, want)
	must(t, f.OperationEnds(nil))
	want.Seen, want.Ended = false, true
	is(t, f, want)
}

func TestAnOperationGivenUpLeavesItsRequestAsIfNeverBegun(t *testing.T) {
	t.Parallel()
	k := Request{Request: policy.Request{Work: policy.WorkRestart}, Since: time.Unix(1, 0).UTC()}
	f := asked(t, &k)
	_, err := f.BeginOperation(Beginning{BootID: "boot-1", At: time.Unix(2, 0), Clock: time.Minute, Cluster: 7})
	must(t, err)
	must(t, f.OperationRecorded())
	must(t, f.OperationGivenUp())
	is(t, f, k)
}

func TestAProgramKeepsTheTimeOfItsFirstStart(t *testing.T) {
	t.Parallel()
	k := Request{Request: policy.Request{Work: policy.WorkCommand, Program: "upgrade"}, Since: time.Unix(1, 0).UTC()}
	f, want := asked(t, &k), k
	want.Ran, want.RanIn, want.RanAt = policy.HooksRunning, "boot-1", time.Minute
	for _, at := range []time.Duration{time.Minute, time.Hour} {
		run, inForce, err := f.ProgramStarted(&k, "boot-1", at)
		if err != nil || !inForce || run != want.CommandRun() {
			t.Errorf("at %s the run is %+v, in force: %t, %v", at, run, inForce, err)
		}
		is(t, f, want)
	}
	must(t, f.ProgramEnded(&k, policy.HooksFailed, "exit status 7"))
	want.Ran, want.RanText = policy.HooksFailed, "exit status 7"
	is(t, f, want)
}

func TestNothingIsRecordedForACancelledRequest(t *testing.T) {
	t.Parallel()
	was := Request{
		Request: policy.Request{Work: policy.WorkCommand, Program: "upgrade"}, Since: time.Unix(1, 0).UTC(),
	}
	over, another := was, was
	over.Ended, another.Since = true, time.Unix(2, 0).UTC()
	for name, now := range map[string]*Request{"no request": nil, "it has ended": &over, "another one": &another} {
		f := asked(t, now)
		if inForce, err := f.EtcdStopped(&was); err != nil || inForce {
			t.Errorf("%s: etcd is stopped for it: %t, %v", name, inForce, err)
		}
		run, inForce, err := f.ProgramStarted(&was, "boot-1", time.Minute)
		if err != nil || inForce || run.ID != "" {
			t.Errorf("%s: its program is started: %+v, %t, %v", name, run, inForce, err)
		}
		if now != nil {
			is(t, f, *now)
		}
	}
	f := asked(t, nil)
	if k, err := f.BeginOperation(Beginning{BootID: "boot-1"}); err != nil || k != nil {
		t.Errorf("without a request, %+v begins: %v", k, err)
	}
	f = asked(t, &another)
	must(t, f.ProgramEnded(&was, policy.HooksDone, ""))
	is(t, f, another)
}

func TestOperationSeenAndStandingEndsApplyToExactlyOneRequest(t *testing.T) {
	t.Parallel()
	k := Request{Request: policy.Request{Work: policy.WorkRestart}, Since: time.Unix(1, 0).UTC()}
	changed := k
	changed.For = time.Hour
	b := Beginning{BootID: "boot-1", At: time.Unix(2, 0).UTC(), Clock: time.Minute, Cluster: 7}
	f := asked(t, &changed)
	must(t, f.OperationSeen(&k, b))
	must(t, f.StandingEnds(&k, policy.Cancelled, "x", time.Unix(3, 0)))
	is(t, f, changed)
	must(t, f.OperationSeen(&changed, b))
	want := changed
	want.Seen, want.BootID, want.Began, want.Clock, want.Cluster = true, "boot-1", b.At, time.Minute, 7
	is(t, f, want)
	must(t, f.OperationSeen(&want, Beginning{BootID: "boot-2", At: time.Unix(9, 0)})) // the beginning on disk is kept
	is(t, f, want)
	must(t, f.StandingEnds(&want, policy.Cancelled, "x", time.Unix(3, 0)))
	if now, last := f.Asked(); now != nil || last.Code != policy.Cancelled || last.Text != "x" {
		t.Errorf("the request is %+v, the last end %+v", now, last)
	}
}

func TestAWithdrawnRequestLeavesNoEndAndAnEndedDefragmentationItsTime(t *testing.T) {
	t.Parallel()
	k := Request{Request: policy.Request{Work: policy.WorkDefrag, Automatic: true}, Since: time.Unix(1, 0).UTC()}
	changed := k
	changed.For = time.Hour
	f := asked(t, &changed)
	must(t, f.Withdraw(&k))
	is(t, f, changed)
	must(t, f.Withdraw(&changed))
	if now, last := f.Asked(); now != nil || last != nil || !f.Noted("", 0, 0).DefragEnded.IsZero() {
		t.Fatalf("the request is %+v, the last end %+v", now, last)
	}
	at := time.Unix(3, 0)
	for _, work := range []policy.Work{policy.WorkDefrag, policy.WorkRestart} {
		next := k
		next.Work = work
		must(t, f.TakeTurn(&next))
		must(t, f.EndRequest(policy.DefragFailed, "x", at))
		if got := f.Noted("", 0, 0).DefragEnded; !got.Equal(time.Unix(3, 0)) {
			t.Fatalf("after a %s, the last defragmentation ended at %v", work, got)
		}
		at = at.Add(time.Hour)
	}
	again, err := Open(HostFiles{}, f.state, f.runtime, nil)
	if must(t, err); !again.Noted("", 0, 0).DefragEnded.Equal(time.Unix(3, 0)) {
		t.Error("the next agent does not know when the last defragmentation ended")
	}
}

func TestARolloutRequestsAHostOnlyIfNothingElseIsRequested(t *testing.T) {
	t.Parallel()
	first, second := Request{Rollout: "x", Since: time.Unix(1, 0).UTC()}, Request{Rollout: "y"}
	f := asked(t, nil)
	must(t, f.TakeTurn(&first))
	must(t, f.TakeTurn(&second))
	is(t, f, first)
}

func TestAHostRecognizesAnOldRolloutRecordByItsResumeCount(t *testing.T) {
	t.Parallel()
	end := (&Request{Rollout: "x", RolloutResumed: 2}).End(policy.Cycled, "", time.Unix(9, 0))
	for resumed, want := range map[int]bool{0: true, 1: true, 2: true, 3: false} {
		r := record.Rollout{ID: "x", Resumed: resumed, Since: time.Unix(int64(resumed), 0)}
		if got := end.Had(r); got != want {
			t.Errorf("rollout resumed %d times, host done after 2: Had returns %t, want %t", resumed, got, want)
		}
	}
	if end.Had(record.Rollout{ID: "y"}) {
		t.Error("the end counts for another rollout")
	}
	if end.Code = policy.Cancelled; !end.Had(record.Rollout{ID: "x", Resumed: 2}) {
		t.Error("the end of a released operation does not count")
	}
}

func TestARequestEndsWithTheResumeCountOfItsRollout(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		in   *record.Rollout
		want int
	}{
		"it was resumed meanwhile":     {&record.Rollout{ID: "x", Resumed: 3}, 3},
		"an older record was restored": {&record.Rollout{ID: "x", Resumed: 1}, 2},
		"another rollout runs by then": {&record.Rollout{ID: "y", Resumed: 3}, 2},
		"no rollout runs any more":     {nil, 2},
	} {
		f := asked(t, &Request{Rollout: "x", RolloutResumed: 2, Request: policy.Request{Work: policy.WorkRestart}})
		must(t, f.OperationEnds(c.in))
		must(t, f.EndRequest(policy.Cycled, "", time.Unix(9, 0)))
		if _, end := f.Asked(); end.RolloutResumed != c.want {
			t.Errorf("%s: RolloutResumed is %d, want %d", name, end.RolloutResumed, c.want)
		}
	}
}
