// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package model

import (
	"fmt"
	"slices"
	"testing"

	"github.com/quorumd/quorumd/agent/policy"
	"github.com/quorumd/quorumd/agent/record"
)

// planWalk explores a scenario without faults in which an operator asks once for a change. It compares the plan at
// that moment with every change of the voters, and every step of a readdress, afterwards. No learner stalls, the
// first host leads, and the host that acts next does not wait for longer than the others wait for it.
type planWalk struct {
	Scenario
	retires int // the host that is retired; -1: the cluster is resized, or a host is readdressed
	moves   int // the host that is readdressed; -1: none
	// plan returns the plan from the view of the first host.
	plan func(v policy.View) []policy.PlanStep

	m     *machine
	plans [][]policy.PlanStep
}

// planWorld is a world and the progress of the plan in it.
type planWorld struct {
	key   key
	asked int    // the number of the plan plus 1; 0: the operator has not asked yet
	taken int    // plan steps so far
	other string // the broken promise; empty if none
}

func (p *planWalk) explore() (broken string, states int) {
	p.m = newMachine(p.Scenario, rules{})
	p.m.inOrder = true
	first := p.initial()
	return worlds[planWorld]{
		first: planWorld{key: first.pack()}, successors: p.successors,
		breach: func(w planWorld) string { return w.other },
		faults: func(planWorld) int { return 0 },
		ends: func(w planWorld) bool {
			return w.asked > 0 && w.taken == len(p.plans[w.asked-1])
		},
		liveness: "every plan is carried out to its end",
	}.explore()
}

func (p *planWalk) successors(from planWorld) (next []planWorld, events []string) {
	before := unpack(&from.key, p.Hosts)
	p.m.expand(&before, func(e event, after *world, _ breach) {
		asks := e.kind == evResize || e.kind == evRetire || e.kind == evRequest
		switch {
		case asks && (from.asked > 0 || e.kind == evRetire && int(e.host) != p.retires ||
			e.kind == evRequest && int(e.host) != p.moves):
			return
		case e.kind == evRequestEnds, e.kind == evLand && e.arg != 0 && p.moves >= 0: // a request or a call fails
			return
		case e.kind == evRound && !p.leadsAsPlanned(&before, e, from.taken > 0):
			return
		case e.kind == evStalled, after.idleTime > 1: // a learner, or the host that acts next, makes no progress
			return
		}
		to := planWorld{key: after.pack(), asked: from.asked, taken: from.taken}
		text := p.m.text(e, &before)
		if asks {
			to.asked = p.remember(&before)
		} else {
			to.take(p, &before, after)
			to.readdress(p, e, &before, after)
		}
		next, events = append(next, to), append(events, text)
	})
	return next, events
}

// firstHostLeads reports whether a round fits a cluster that the first host leads: only the first host sees itself
// as the leader. If the first host is retired, another host may lead as well, because leadership is transferred
// before the member leaves.
func (p *planWalk) firstHostLeads(w *world, round event) bool {
	if round.arg%2 != 0 { // hosts rank by number, so the rank makes no difference
		return false
	}
	how, leads := round.arg/2, round.host == 0 && w.hosts[0].list == voter
	return how == leader && leads || how == follower && (!leads || w.isRetired(0))
}

// leadsAsPlanned is firstHostLeads or, in a readdress, the same until the first host has transferred leadership,
// which is the first step of its plan.
func (p *planWalk) leadsAsPlanned(w *world, round event, begun bool) bool {
	if p.moves < 0 {
		return p.firstHostLeads(w, round)
	}
	leads := round.host == 0 && w.mayLead(0) && (p.moves != 0 || !begun)
	return round.arg%2 == 0 && (round.arg/2 == leader) == leads && round.arg/2 <= leader
}

// remember returns the number, plus 1, of the plan that the first host makes in a world.
func (p *planWalk) remember(w *world) int {
	made := changes(p.plan(p.viewOf(w)))
	i := slices.IndexFunc(p.plans, func(known []policy.PlanStep) bool { return slices.Equal(known, made) })
	if i < 0 {
		i, p.plans = len(p.plans), append(p.plans, made)
	}
	return i + 1
}

// viewOf returns the view of the first host, which leads.
func (p *planWalk) viewOf(w *world) policy.View {
	s := w.observe(0)
	s.setViewpoint(leader)
	return p.m.viewOf(&s, byNumber)
}

// changes returns the steps that change a member.
func changes(steps []policy.PlanStep) []policy.PlanStep {
	return slices.DeleteFunc(steps, func(s policy.PlanStep) bool { return s.Change == "" })
}

// take compares a change of the voters with the next step of the plan.
func (w *planWorld) take(p *planWalk, before, after *world) {
	for i := range before.n {
		was, is := before.hosts[i].list == voter, after.hosts[i].list == voter
		if was == is {
			continue
		}
		change := policy.PlanJoins
		if was {
			change = policy.PlanLeaves
		}
		if w.asked == 0 || w.taken == len(p.plans[w.asked-1]) {
			w.other = fmt.Sprintf("no unplanned change: %s %s", hostName(i), change)
			return
		}
		step := p.plans[w.asked-1][w.taken]
		if voters, _ := after.votes(); step.Change != change || step.Host != hostName(i) || step.Voters != voters {
			w.other = fmt.Sprintf("the plan is what happens: %s %s, but the plan has %+v", hostName(i), change, step)
			return
		}
		w.taken++
	}
}

// readdress compares a step of a readdress with the next step of the plan.
func (w *planWorld) readdress(p *planWalk, e event, before, after *world) {
	h := int(e.host)
	was, is := before.hosts[h], after.hosts[h]
	var change policy.PlanChange
	switch {
	case p.moves < 0:
		return
	case e.kind == evLand && was.phase == sent && was.step == transferLeadership:
		change = policy.PlanTransfers
	case before.urls[h] != after.urls[h] && after.urls[h].has(newRegistered) && !before.urls[h].has(newRegistered):
		change = policy.PlanUpdates
	case was.unit != starting && is.unit == starting:
		change = policy.PlanRestarts
	default:
		return
	}
	if w.asked == 0 || w.taken == len(p.plans[w.asked-1]) {
		w.other = fmt.Sprintf("no unplanned step: %s %s", hostName(h), change)
		return
	}
	voters, _ := after.votes()
	if step := p.plans[w.asked-1][w.taken]; step.Change != change || step.Host != hostName(h) || step.Voters != voters {
		w.other = fmt.Sprintf("the plan is what happens: %s %s, but the plan has %+v", hostName(h), change, step)
		return
	}
	w.taken++
}

func planWalks() []*planWalk {
	resize := func(voters int) func(policy.View) []policy.PlanStep {
		return func(v policy.View) []policy.PlanStep {
			steps, _ := policy.ResizePlan(v, voters)
			return steps
		}
	}
	retire := func(i int) func(policy.View) []policy.PlanStep {
		return func(v policy.View) []policy.PlanStep { return policy.RetirePlan(v, hostName(i), record.Successor{}) }
	}
	one, three, five := policy.Target{Voters: 1}, policy.Target{Voters: 3}, policy.Target{Voters: 5}
	resizes := func(name string, hosts int, from policy.Target, to int) *planWalk {
		sc := Scenario{Name: name, Hosts: hosts, Voters: from.Voters, Target: from, ResizeTo: to}
		return &planWalk{Scenario: sc, retires: -1, moves: -1, plan: resize(to)}
	}
	retires := func(name string, hosts int, from policy.Target, i int) *planWalk {
		sc := Scenario{Name: name, Hosts: hosts, Voters: from.Voters, Target: from, Retirements: 1}
		return &planWalk{Scenario: sc, retires: i, moves: -1, plan: retire(i)}
	}
	readdresses := func(name string, hosts, i int) *planWalk {
		sc := Scenario{
			Name: name, Hosts: hosts, Voters: hosts, Target: policy.Target{Voters: hosts}, Requests: 1,
			Work: readdressing, Readdress: true,
		}
		moves := []policy.RolloutHost{{
			ID: hostName(i), Name: hostName(i), PeerURL: peerURL(i, false), NewPeerURL: peerURL(i, true),
		}}
		return &planWalk{Scenario: sc, retires: -1, moves: i, plan: func(v policy.View) []policy.PlanStep {
			return policy.ReaddressPlan(v, moves)
		}}
	}
	return []*planWalk{
		resizes("one voter becomes three", 3, one, 3),
		resizes("one voter becomes five", 5, one, 5),
		resizes("three voters become five", 5, three, 5),
		resizes("five voters become three", 5, five, 3),
		resizes("five voters become one", 5, five, 1),
		resizes("three voters become one", 3, three, 1),
		retires("the leader of three is retired", 4, three, 0),
		retires("a follower of three is retired", 5, three, 2),
		retires("a spare is retired", 5, three, 4),
		readdresses("a follower of three is readdressed", 3, 2),
		readdresses("the leader of three is readdressed", 3, 0),
		readdresses("the leader of five is readdressed", 5, 0),
	}
}

func TestAPlanIsWhatHappensInEveryWalkWithoutAFault(t *testing.T) {
	t.Parallel()
	for _, p := range planWalks() {
		t.Run(p.Name, func(t *testing.T) {
			t.Parallel()
			broken, states := p.explore()
			t.Logf("%d states, %d plans", states, len(p.plans))
			if broken != "" {
				t.Error(broken)
			}
		})
	}
}

func TestAPlanThatDiffersFromWhatHappensIsFound(t *testing.T) {
	t.Parallel()
	for mistake, change := range map[string]func([]policy.PlanStep) []policy.PlanStep{
		"the order of the hosts is reversed": func(steps []policy.PlanStep) []policy.PlanStep {
			for i, j := 0, len(steps)-1; i < j; i, j = i+1, j-1 {
				steps[i].Host, steps[j].Host = steps[j].Host, steps[i].Host
			}
			return steps
		},
		"the last step is missing": func(steps []policy.PlanStep) []policy.PlanStep { return steps[:len(steps)-1] },
		"a step is planned twice": func(steps []policy.PlanStep) []policy.PlanStep {
			return append(steps, steps[len(steps)-1])
		},
		"every number of voters is one too high": func(steps []policy.PlanStep) []policy.PlanStep {
			for i := range steps {
				steps[i].Voters++
			}
			return steps
		},
	} {
		for _, p := range planWalks() {
			right := p.plan
			p.m = newMachine(p.Scenario, rules{})
			first := p.initial()
			plan := changes(right(p.viewOf(&first)))
			if len(plan) < 2 || slices.Equal(plan, change(slices.Clone(plan))) {
				continue
			}
			t.Run(mistake+"/"+p.Name, func(t *testing.T) {
				t.Parallel()
				p.plan = func(v policy.View) []policy.PlanStep { return change(changes(right(v))) }
				if broken, _ := p.explore(); broken == "" {
					t.Error("the mistake is not found")
				}
			})
		}
	}
}
