// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package model

import "github.com/quorumd/quorumd/agent/policy"

// rollBreach is a way to break a promise of rollouts.
type rollBreach uint8

const (
	rollAtOnce rollBreach = iota + 1
	rollTwice
	rollHalted
	rollLeaderFirst
	rollEarly
	rollWrong
	rollOverwritten
	rollStray
	rollForEver
	rollSilent
)

func rollPromises() map[rollBreach]promise {
	return map[rollBreach]promise{
		rollAtOnce:      {"P1", "a rollout takes down two hosts at once"},
		rollTwice:       {"P1", "a rollout takes a host down twice without being resumed"},
		rollHalted:      {"P4", "a paused or finished rollout takes a host down"},
		rollLeaderFirst: {"P2", "a rollout takes the leader before a healthy follower"},
		rollEarly:       {"P8", "a host or the rollout is recorded as done although it is not"},
		rollWrong:       {"P8", "a rollout continues after a host came back with the wrong version"},
		rollOverwritten: {"P1", "a rollout record overwrites a concurrent write"},
		rollStray:       {"P4", "an agent takes a step that no rollout needs"},
		rollForEver:     {"liveness", "all is healed, and a rollout neither ends nor reports why it stopped"},
		rollSilent:      {"P8", "a decision has neither a step nor a reason"},
	}
}

// judge checks a world.
func (m *rollMachine) judge(w *rolling) rollBreach {
	if w.state == rollDone && w.waiting != 0 {
		return rollEarly
	}
	return 0
}

// judgeDecision checks an agent's decision at the time of its view.
func (m *rollMachine) judgeDecision(w *rolling, i int, d policy.Decision) rollBreach {
	takes := d.Notes.Request.Change == policy.RequestTurn
	switch {
	case d.Step.Kind == policy.StepNone && len(d.Reasons) == 0:
		return rollSilent
	case (takes || d.Step.Kind == policy.StepBeginCycle) && w.state != rollRuns:
		return rollHalted
	case m.past != rollLeaderFirst && takes && i == int(w.leader) && w.hosts[i].slow == 0 && m.othersFirst(w, i):
		return rollLeaderFirst
	}
	return 0
}

// othersFirst reports whether another host that is present waits for its operation.
func (m *rollMachine) othersFirst(w *rolling, i int) bool {
	for k := range m.hosts() {
		h := &w.hosts[k]
		if k != i && w.waiting>>k&1 != 0 && h.dead|h.off|h.apart == 0 {
			return true
		}
	}
	return false
}

// judgeStop checks the world at the moment at which a host is taken down.
func (m *rollMachine) judgeStop(w *rolling, i int, step uint8) rollBreach {
	for k := range m.hosts() {
		if k != i && w.hosts[k].low != 0 {
			return rollAtOnce
		}
	}
	if step != rollTakeDown && w.hosts[i].turned == w.hosts[i].within {
		return rollTwice
	}
	return 0
}

// judgeEnd checks how the rollout continues after a host's operation ends.
func (m *rollMachine) judgeEnd(w *rolling, i int, outcome uint8, end policy.RolloutEnd) rollBreach {
	h := &w.hosts[i]
	worked := h.restarted != 0
	if m.Work == policy.WorkReboot {
		worked = w.boot == 0
	}
	switch {
	case !end.HostDone:
		return 0
	case outcome != rollCycled || !worked:
		return rollEarly
	case h.stale != 0:
		return rollWrong
	}
	return 0
}

// comesToRest checks one fair run from a world, in which everything is healed and operators do nothing more. At its end
// no host is down or has a request, and the rollout is over or waits for an operator.
func (m *rollMachine) comesToRest(start *rolling) bool {
	w := *start
	w.faults, w.said = 0, 0
	var way []rolling
	for range rollPasses {
		if m.rests[w] {
			break
		}
		way = append(way, w)
		before := w
		m.pass(&w)
		if w == before {
			if !m.atRest(&w) {
				return false
			}
			break
		}
	}
	if len(way) == rollPasses {
		return false
	}
	for _, on := range way {
		m.rests[on] = true
	}
	return true
}

// rollPasses bounds a run to rest.
const rollPasses = 200

// pass heals, lets time pass, and lets every agent act once.
func (m *rollMachine) pass(w *rolling) {
	for i := range m.hosts() {
		h := &w.hosts[i]
		if h.off != 0 {
			m.boots(w, i)
		}
		h.dead, h.apart, h.slow = 0, 0, 0
		if h.unit == starting {
			h.serves()
		}
		if w.tidy(); h.note != policy.RequestStays {
			m.write(w, i)
		}
		if int(w.lock) == i+1 && h.belief == 0 {
			w.lock = 0
		}
		if w.owns(i) && w.phase == phaseBack {
			w.back = 1
		}
		w.cool = bit(w.op == 0)
		if h.step == rollNone {
			m.round(w, i)
		}
		m.act(w, i, whole)
		w.tidy()
	}
}

func (m *rollMachine) atRest(w *rolling) bool {
	for i := range m.hosts() {
		h := &w.hosts[i]
		if h.ask != nothing || h.note != policy.RequestStays || i < rollVoters && h.unit != active {
			return false
		}
	}
	return w.op|w.lock == 0 && w.state != rollRuns
}
