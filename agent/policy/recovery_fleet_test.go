// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"fmt"
	"testing"
)

// fleet is the rest of a cluster of five voters after two were lost for good: the survivor, a second host in the plan,
// and a third host that is powered off and may return late with its old data. Every agent decides on its own.
type fleet struct {
	hosts [3]site
	away  bool // the third host is off
}

const oldQuorum = 3 // of five voters

// serving reports which clusters answer: the old one if all three hosts run on their old data, the new one if the
// survivor runs on the new cluster's data.
func (f fleet) serving() (old, made bool) {
	n := 0
	for i, s := range f.hosts {
		if s.old() && s.unit == UnitActive && (i < 2 || !f.away) {
			n++
		}
	}
	return n >= oldQuorum, f.hosts[0].data == newCluster && f.hosts[0].unit == UnitActive
}

// seen returns a host with serves set to the cluster that it reaches. For the survivor's own new cluster, serves stays
// 0.
func (f fleet) seen(i int) site {
	s := f.hosts[i]
	old, made := f.serving()
	switch {
	case old:
		s.serves = oldCluster
	case made && i > 0:
		s.serves = newCluster
	default:
		s.serves = 0
	}
	return s
}

// late reports whether a host is late: no plan is in force there, and the answering cluster has announced that it
// replaces the old one.
func (f fleet) late(i int) bool {
	s := f.seen(i)
	return !s.planned && s.serves == newCluster && f.hosts[0].announced && !s.noted && (i < 2 || !f.away)
}

// with returns the fleet with a new state for host i. It clears serves, which is not part of the state.
func (f fleet) with(i int, s site) fleet {
	s.serves = 0
	f.hosts[i] = s
	return f
}

// operators returns the states that operators can cause: they apply the plan on a host that observes no quorum, or
// switch on the third host.
func (f fleet) operators() []fleet {
	var all []fleet
	for i := range 2 {
		if s := f.seen(i); !s.planned && s.outcome == "" && s.serves == 0 && s.old() {
			s.planned = true
			all = append(all, f.with(i, s))
		}
	}
	if f.away {
		f.away = false
		all = append(all, f)
	}
	return all
}

// agents returns the states that the agents' next steps lead to, or an error if a step is forbidden.
func (f fleet) agents(decide func(View) Decision) ([]fleet, error) {
	var all []fleet
	for i := range f.hosts {
		s := f.seen(i)
		if !s.planned && !f.late(i) {
			continue // the host waits for operators or is done; see package model
		}
		v := s.view()
		if !s.planned {
			v.Recovery = &Recovery{Old: oldCluster, New: newCluster, Late: true}
		}
		d := decide(v)
		if err := s.allowed(d.Step); err != nil {
			return nil, fmt.Errorf("host %d: %w", i, err)
		}
		for _, to := range s.after(d.Step) {
			if to.both || to.dup {
				return nil, fmt.Errorf("host %d: %s leads from %+v to %+v", i, d.Step.Kind, s, to)
			}
			if next := f.with(i, to); next != f {
				all = append(all, next)
			}
		}
	}
	return all, nil
}

// ended returns an error if a fleet in which no step is left is in a wrong state.
func (f fleet) ended() error {
	_, made := f.serving()
	for i, s := range f.hosts {
		switch {
		case made && s.old():
			return fmt.Errorf("host %d keeps its old data forever: %+v", i, f)
		case s.planned && s.survivor, s.planned && made:
			return fmt.Errorf("host %d never completes its plan: %+v", i, f)
		}
	}
	return nil
}

// exploreFleet explores every possible history of a fleet: operators apply the plan in any order, hosts with a plan and
// their agents crash at any time, operators may give the plan up there, and the third host returns at any time.
func exploreFleet(decide func(View) Decision) (states int, err error) {
	begin := fleet{away: true}
	for i := range begin.hosts {
		begin.hosts[i] = site{data: oldCluster, unit: UnitActive, survivor: i == 0}
	}
	seen, next := map[fleet]bool{begin: true}, []fleet{begin}
	for len(next) > 0 {
		f := next[0]
		next = next[1:]
		if old, made := f.serving(); old && made {
			return len(seen), fmt.Errorf("the old cluster and the new one serve at once: %+v", f)
		}
		all, err := f.agents(decide)
		if err != nil {
			return len(seen), err
		}
		all = append(all, f.operators()...)
		if len(all) == 0 {
			if err := f.ended(); err != nil {
				return len(seen), err
			}
		}
		for i, s := range f.hosts {
			if !s.planned {
				continue
			}
			for _, to := range s.crashes() {
				all = append(all, f.with(i, to))
			}
		}
		for _, to := range all {
			if !seen[to] {
				seen[to] = true
				next = append(next, to)
			}
		}
	}
	return len(seen), nil
}

func TestAFleetCompletesItsPlanInAnyOrder(t *testing.T) {
	t.Parallel()
	states, err := exploreFleet(Decide)
	if err != nil {
		t.Error(err)
	}
	if states < 500 {
		t.Errorf("only %d states were found", states)
	}
	t.Logf("%d states", states)
}

func TestAMistakeInTheRecoveryOfAFleetIsFound(t *testing.T) {
	t.Parallel()
	for name, wrong := range map[string]func(View, Decision) Step{
		"the survivor does not publish that it continues alone": func(v View, d Decision) Step {
			if v.Recovery.Survivor && d.Step.Outcome == Recovered {
				return Step{Kind: StepEndRecovery, Outcome: QuorumRestored}
			}
			return d.Step
		},
		"a late host keeps its data": func(v View, d Decision) Step {
			if v.Recovery.Late && d.Step.Kind == StepLayAside {
				return Step{}
			}
			return d.Step
		},
		"another host moves its data aside before the survivor serves": func(v View, d Decision) Step {
			if !v.Recovery.Survivor && d.Step.Kind == StepNone && v.Unit.State == UnitInactive {
				return Step{Kind: StepLayAside}
			}
			return d.Step
		},
		"another host never ends its plan": func(v View, d Decision) Step {
			if !v.Recovery.Survivor && d.Step.Kind == StepEndRecovery {
				return Step{}
			}
			return d.Step
		},
		"a late host joins with its old data": func(v View, d Decision) Step {
			if v.Recovery.Late && d.Step.Kind == StepLayAside {
				return Step{Kind: StepStartUnit}
			}
			return d.Step
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := exploreFleet(func(v View) Decision { d := Decide(v); d.Step = wrong(v, d); return d })
			if err == nil {
				t.Error("no mistake is found")
			}
		})
	}
}
