// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"fmt"
	"testing"
)

const (
	oldCluster = 0x01d
	newCluster = 0x2e3
	thirdOne   = 0x3
)

// site is a minimal model of a host under a recovery plan.
type site struct {
	survivor  bool
	data      uint64 // the cluster of its data; 0 if the directory is empty
	unit      UnitState
	copy      CopyState
	made      bool   // the copy on disk is complete
	noted     bool   // the disk records that this host belongs to the new cluster
	planned   bool   // the plan is in force
	givenUp   bool   // an operator gave the plan up before the copy was put in place
	snapshot  bool   // the plan restores a snapshot on this host
	env       bool   // etcd's environment is written
	announced bool   // the recovered cluster publishes that it replaces the old one
	serves    uint64 // the cluster that this host reaches, whatever it does itself
	outcome   ReasonCode
	both, dup bool // violations: etcd started on the wrong data; data copied while etcd has it open
}

func (s site) view() View {
	v := View{
		Self: Self{ID: "a", Name: "a", PeerURL: "http://a", Mode: Manage, Drives: true}, Target: Target{Voters: 3},
		Unit:      Unit{State: s.unit, SinceStart: Never, Ran: true},
		Data:      Data{State: DataMember, ClusterID: s.data, MemberID: 7},
		CopiedFor: Never,
		Cluster:   Cluster{ExpectedID: oldCluster},
	}
	if s.data == 0 {
		v.Data = Data{State: DataEmpty}
	}
	if s.noted {
		v.Cluster.ExpectedID = newCluster
	}
	switch {
	case s.serves != 0:
		v.Cluster.Reachable, v.Cluster.Listed, v.Cluster.ID = true, true, s.serves
	case s.survivor && s.unit == UnitActive && s.data == newCluster:
		v.Cluster.Reachable, v.Cluster.Listed, v.Cluster.ID = true, true, newCluster
	}
	if s.planned {
		v.Recovery = &Recovery{
			Plan: "p", Old: oldCluster, New: newCluster, Survivor: s.survivor, Member: 7, Noted: s.noted,
			Copy: Copy{State: s.copy}, Snapshot: s.snapshot, GivenUp: s.givenUp,
		}
		v.Unit.EnvReady = s.env || !s.snapshot
	}
	return v
}

// after returns the possible states after a step, whether it completes or a crash interrupts it.
func (s site) after(step Step) []site {
	done := s
	switch step.Kind {
	case StepStopForRecovery:
		done.unit = UnitInactive
	case StepCopyData:
		done.copy = CopyRuns
		done.dup = s.unit == UnitActive
		complete := done
		complete.copy, complete.made = CopyComplete, true
		failed := done
		failed.copy = CopyFailed
		return []site{done, complete, failed}
	case StepPlaceCopy:
		if !s.made {
			return []site{s}
		}
		moved, placed := s, s
		if s.data == oldCluster {
			moved.data = 0
		}
		placed.data, done.data, done.noted = newCluster, newCluster, true
		return []site{moved, placed, done}
	case StepLayAside:
		done.data = 0
	case StepWriteEnv:
		done.env = true
	case StepStartUnit:
		done.unit = UnitActive
		done.both = s.data == oldCluster && s.serves != oldCluster && !s.givenUp || s.data == 0 ||
			s.snapshot && !s.env && !s.old()
	case StepEndRecovery:
		done.planned, done.givenUp, done.outcome = false, false, step.Outcome
		if step.Outcome == Recovered {
			done.noted, done.announced = true, s.survivor
		}
		noted := s
		noted.noted = done.noted
		return []site{noted, done}
	case StepNone:
		if s.copy == CopyRuns { // the copy continues without a step
			complete, failed := s, s
			complete.copy, complete.made, failed.copy = CopyComplete, true, CopyFailed
			return []site{complete, failed}
		}
	}
	return []site{done}
}

// failed reports whether etcd has failed to start.
func (s site) failed() bool { return s.unit == UnitFailed }

func (s site) old() bool { return s.data == oldCluster }

// crashes returns what may happen between any two steps: the agent dies, the host reboots without starting etcd, or an
// operator abandons the plan.
func (s site) crashes() []site {
	agent, host := s, s
	agent.copy, host.copy = CopyNone, CopyNone
	host.unit = UnitInactive
	if s.planned && !s.givenUp && s.data != newCluster && s.unit != UnitDeactivating {
		given := s // giving the plan up also ends the copy
		given.givenUp = true
		if given.copy == CopyRuns {
			given.copy = CopyFailed
		}
		return []site{agent, host, given}
	}
	return []site{agent, host}
}

// explore explores every possible history of a host under a plan, and returns the first violation.
func explore(decide func(View) Decision, begin site) error {
	seen, next := map[site]bool{begin: true}, []site{begin}
	ended := false
	for len(next) > 0 {
		s := next[0]
		next = next[1:]
		if !s.planned {
			if s.outcome == RecoveryGivenUp {
				if s.data == newCluster || s.data == oldCluster && s.unit != UnitActive && !s.failed() {
					return fmt.Errorf("the plan was given up, and the host is not in its former state: %+v", s)
				}
				continue
			}
			ended = true
			if s.outcome == Recovered && s.survivor && (s.data != newCluster || !s.noted) {
				return fmt.Errorf("the survivor has ended without the new cluster's data: %+v", s)
			}
			if s.outcome == Recovered && !s.survivor && s.data == oldCluster {
				return fmt.Errorf("a host has kept its old data: %+v", s)
			}
			continue
		}
		d := decide(s.view())
		if err := s.allowed(d.Step); err != nil {
			return err
		}
		for _, to := range append(s.after(d.Step), s.crashes()...) {
			if to.both || to.dup {
				return fmt.Errorf("%s leads from %+v to %+v", d.Step.Kind, s, to)
			}
			if !seen[to] {
				seen[to] = true
				next = append(next, to)
			}
		}
	}
	waits := !begin.survivor && begin.serves == 0 // the host waits for the survivor
	if ended == waits && begin.serves != thirdOne {
		return fmt.Errorf("the plan ends: %t, in %d states", ended, len(seen))
	}
	return nil
}

// allowed returns an error if a step is not allowed in this state of a plan.
func (s site) allowed(step Step) error {
	switch step.Kind {
	case StepNone, StepStopForRecovery, StepStartUnit:
		return nil
	case StepEndRecovery: // no host may record a new cluster that might never be created
		if step.Outcome != Recovered || s.survivor || s.serves == newCluster {
			return nil
		}
	case StepCopyData, StepPlaceCopy:
		if s.survivor && !s.givenUp {
			return nil
		}
	case StepWriteEnv:
		if s.snapshot && s.data == newCluster {
			return nil
		}
	case StepLayAside:
		if !s.survivor && !s.givenUp && s.unit != UnitActive && s.serves == newCluster {
			return nil
		}
	}
	return fmt.Errorf("%s in %+v", step.Kind, s)
}

func begins() []site {
	var all []site
	for _, survivor := range []bool{true, false} {
		for _, unit := range []UnitState{UnitActive, UnitInactive, UnitFailed} {
			for _, serves := range []uint64{0, oldCluster, newCluster} {
				one := site{survivor: survivor, data: oldCluster, unit: unit, serves: serves, planned: true}
				all = append(all, one)
				if survivor {
					one.snapshot = true
					all = append(all, one)
				}
				if unit != UnitActive { // add the same without data
					one.data = 0
					all = append(all, one)
				}
			}
		}
	}
	return all
}

func TestAHostCompletesItsPlanWhereverItCrashes(t *testing.T) {
	t.Parallel()
	for _, begin := range begins() {
		if begin.survivor && begin.serves == newCluster {
			continue // the new cluster does not answer before the survivor has created it
		}
		if err := explore(Decide, begin); err != nil {
			t.Errorf("%+v: %v", begin, err)
		}
	}
}

func TestAMistakeInARecoveryIsFound(t *testing.T) {
	t.Parallel()
	for name, wrong := range map[string]func(View, Decision) Step{
		"the old data is started again": func(v View, d Decision) Step {
			if d.Step.Kind == StepCopyData {
				return Step{Kind: StepStartUnit}
			}
			return d.Step
		},
		"etcd is not stopped first": func(_ View, d Decision) Step {
			if d.Step.Kind == StepStopForRecovery {
				return Step{Kind: StepCopyData}
			}
			return d.Step
		},
		"the plan ends when the copy is complete": func(v View, d Decision) Step {
			if d.Step.Kind == StepPlaceCopy {
				return Step{Kind: StepEndRecovery, Outcome: Recovered}
			}
			return d.Step
		},
		"another host continues with its old data": func(_ View, d Decision) Step {
			if d.Step.Kind == StepLayAside {
				return Step{Kind: StepEndRecovery, Outcome: Recovered}
			}
			return d.Step
		},
		"another host moves its data aside before the survivor has succeeded": func(v View, d Decision) Step {
			if d.Step.Kind == StepNone && !v.Recovery.Survivor && v.Unit.State != UnitActive {
				return Step{Kind: StepLayAside}
			}
			return d.Step
		},
		"etcd is started on a snapshot with its former environment": func(_ View, d Decision) Step {
			if d.Step.Kind == StepWriteEnv {
				return Step{Kind: StepStartUnit}
			}
			return d.Step
		},
		"a plan that was given up continues": func(v View, d Decision) Step {
			if v.Recovery.GivenUp {
				v.Recovery.GivenUp = false
				return Decide(v).Step
			}
			return d.Step
		},
		"a plan that was given up leaves etcd down": func(v View, d Decision) Step {
			if v.Recovery.GivenUp && d.Step.Kind == StepStartUnit {
				return Step{Kind: StepEndRecovery, Outcome: RecoveryGivenUp}
			}
			return d.Step
		},
		"a join continues during the plan": func(_ View, d Decision) Step {
			if d.Step.Kind == StepEndRecovery {
				return Step{Kind: StepAddLearner}
			}
			return d.Step
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, begin := range begins() {
				decide := func(v View) Decision { d := Decide(v); d.Step = wrong(v, d); return d }
				if explore(decide, begin) != nil {
					return
				}
			}
			t.Error("no mistake is found")
		})
	}
}

func TestAnEtcdThatWasDownBeforeThePlanDoesNotStartAtABootNextToTheRecoveredCluster(t *testing.T) {
	t.Parallel()
	for what, c := range map[string]struct {
		change func(*View)
		want   StartGuard
	}{
		"old data":                  {func(*View) {}, GuardSet},
		"with a failed unit":        {func(v *View) { v.Unit.State = UnitFailed }, GuardSet},
		"no data":                   {func(v *View) { v.Data = Data{State: DataEmpty} }, GuardSet},
		"old data, on the survivor": {func(v *View) { v.Recovery.Survivor = true }, GuardSet},
		"the new cluster's data":    {func(v *View) { v.Data.ClusterID = newCluster }, GuardUnchanged},
		"unknown data":              {func(v *View) { v.Data.State = DataUnknown }, GuardUnchanged},
		"old data, and the old cluster answers": {func(v *View) {
			v.Cluster.Reachable, v.Cluster.ID = true, oldCluster
		}, GuardUnchanged},
		"old data, and the plan is given up":    {func(v *View) { v.Recovery.GivenUp = true }, GuardUnchanged},
		"old data, and the agent only observes": {func(v *View) { v.Self.Mode = Observe }, GuardUnchanged},
		"old data, and etcd runs":               {func(v *View) { v.Unit.State = UnitActive }, GuardUnchanged},
		"old data, and the recovered cluster answers": {func(v *View) {
			v.Cluster.Reachable, v.Cluster.ID = true, newCluster
		}, GuardSet},
	} {
		v := site{data: oldCluster, unit: UnitInactive}.view()
		v.Recovery = &Recovery{Old: oldCluster, New: newCluster}
		c.change(&v)
		if got := Decide(v).Notes.StartGuard; got != c.want {
			t.Errorf("%s: %v, want %v", what, got, c.want)
		}
	}
}

func TestAPlanPrecedesEveryRequestAndOperation(t *testing.T) {
	t.Parallel()
	for _, begin := range begins() {
		v := begin.view()
		want := Decide(v)
		v.Asked = &Asked{Request: Request{Work: WorkRestart, Stopped: true, Begun: true}}
		v.Removal = &Removal{MemberID: 9}
		v.Bootstrap.Requested = true
		v.Op = &Op{Kind: KindCycle, Host: "a", Phase: PhaseDown}
		v.Pause = &Pause{By: "root"}
		v.Rollout = &Rollout{}
		d := Decide(v)
		if d.Step.Kind != want.Step.Kind || d.Notes.StartGuard != want.Notes.StartGuard {
			t.Errorf("%+v: %s instead of %s, start guard %v instead of %v", begin, d.Step.Kind, want.Step.Kind,
				d.Notes.StartGuard,
				want.Notes.StartGuard)
		}
	}
}

func TestALateHostOfARecoveredClusterMovesItsDataAside(t *testing.T) {
	t.Parallel()
	v := site{data: oldCluster, unit: UnitActive, serves: newCluster}.view()
	if d := Decide(v); d.Step.Kind != StepNone || d.Reasons[0].Code != ClusterIDMismatch {
		t.Errorf("without an answer of the cluster: %+v", d)
	}
	v.Recovery = &Recovery{Old: oldCluster, New: newCluster, Late: true}
	if d := Decide(v); d.Step.Kind != StepStopForRecovery {
		t.Errorf("etcd runs: %+v", d)
	}
	v.Recovery.OldServes = true
	if d := Decide(v); d.Step.Kind != StepNone || d.Reasons[0].Code != ClusterIDMismatch {
		t.Errorf("etcd serves the old cluster, with a quorum: %+v", d)
	}
	v.Unit.State = UnitInactive // an operator has stopped etcd
	if d := Decide(v); d.Step.Kind != StepLayAside {
		t.Errorf("etcd is down: %+v", d)
	}
	v.Data = Data{State: DataEmpty}
	if d := Decide(v); d.Step.Kind != StepEndRecovery {
		t.Errorf("the data was moved aside: %+v", d)
	}
	v.Pause = &Pause{By: "root"}
	if d := Decide(v); d.Step.Kind != StepNone {
		t.Errorf("a pause blocks a late host: %+v", d)
	}
}

func TestASurvivorWithNewDataKeepsItsPlanWhileTheOldClusterAnswers(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		site site
		step StepKind
	}{
		"it has the new cluster's data":        {site{survivor: true, data: newCluster}, StepNone},
		"it has the old data":                  {site{survivor: true, data: oldCluster}, StepStartUnit},
		"it has not restored the snapshot yet": {site{survivor: true, snapshot: true}, StepEndRecovery},
		"it has restored the snapshot":         {site{survivor: true, snapshot: true, data: newCluster}, StepNone},
		"the host is not the survivor":         {site{data: newCluster}, StepEndRecovery},
	} {
		c.site.planned, c.site.serves, c.site.unit = true, oldCluster, UnitInactive
		d, decided := recovery(c.site.view())
		if !decided || d.Step.Kind != c.step || c.step == StepNone && d.Reasons[0].Code != Recovering {
			t.Errorf("%s: %t, %+v", name, decided, d)
		}
	}
}
