// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"fmt"
	"testing"
)

// fleet is what is left of a cluster of five voters, two of them lost for good: the survivor, another host in the plan,
// and one that is away and may come back late, with its old data. Every agent decides for itself.
type fleet struct {
	hosts [3]site
	away  bool // the third
}

const oldQuorum = 3 // of five

// serving returns which cluster answers: the old one if all three hosts run with their old data, the new one if the
// survivor does.
func (f fleet) serving() (old, made bool) {
	n := 0
	for i, s := range f.hosts {
		if s.old() && s.unit == UnitActive && (i < 2 || !f.away) {
			n++
		}
	}
	return n >= oldQuorum, f.hosts[0].data == newCluster && f.hosts[0].unit == UnitActive
}

// seen returns a host with what it reaches of the others.
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

// late reports whether the answering cluster publishes that it replaces this host's old one.
func (f fleet) late(i int) bool {
	s := f.seen(i)
	return !s.planned && s.serves == newCluster && f.hosts[0].announced && !s.noted && (i < 2 || !f.away)
}

// with returns the fleet with another state of one host. What that host reaches is not part of its state.
func (f fleet) with(i int, s site) fleet {
	s.serves = 0
	f.hosts[i] = s
	return f
}

// people returns what operators may do: apply the plan where no quorum is seen, and switch on the third host.
func (f fleet) people() []fleet {
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

// agents returns what the agents do next, and an error if that is not allowed.
func (f fleet) agents(decide func(View) Decision) ([]fleet, error) {
	var all []fleet
	for i := range f.hosts {
		s := f.seen(i)
		if !s.planned && !f.late(i) {
			continue // it waits for operators, or is done: see package model
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

// ended returns what is wrong with a fleet in which nothing happens any more.
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

// exploreFleet explores every course of a fleet: agents and hosts crash at any moment, the plan is applied in any order
// and may be abandoned on any host, and the third host comes back at any time.
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
		all = append(all, f.people()...)
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
		"another host waits for nothing": func(v View, d Decision) Step {
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
