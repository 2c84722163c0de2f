// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package model

import "github.com/quorumd/quorumd/agent/policy"

// rolloutBreach is a way to break a promise of rollouts.
type rolloutBreach uint8

const (
	rolloutTwoDown rolloutBreach = iota + 1
	rolloutHostTwice
	rolloutNotHalted
	rolloutLeaderFirst
	rolloutDoneEarly
	rolloutWrongVersion
	rolloutOverwritten
	rolloutUnexpectedStep
	rolloutNeverEnds
	rolloutNoReason
	rolloutNotAsked
)

func rolloutPromises() map[rolloutBreach]promise {
	return map[rolloutBreach]promise{
		rolloutTwoDown:   {"P1", "a rollout takes down two hosts at once"},
		rolloutHostTwice: {"P1", "a rollout takes a host down twice without being resumed"},
		rolloutNotHalted: {"P4", "a paused or finished rollout takes a host down"},
		rolloutLeaderFirst: {
			"P2", "a rollout requests the leader's operation while another available host still waits",
		},
		rolloutDoneEarly:      {"P8", "a host or the rollout is recorded as done although it is not"},
		rolloutWrongVersion:   {"P8", "a rollout continues after a host came back with the wrong version"},
		rolloutOverwritten:    {"P1", "a rollout record overwrites a concurrent write"},
		rolloutUnexpectedStep: {"P4", "an agent takes a step that no rollout needs"},
		rolloutNeverEnds: {
			"liveness", "all faults have ended, but a rollout neither ends nor reports why it stopped",
		},
		rolloutNoReason: {"P8", "a decision has neither a step nor a reason"},
		rolloutNotAsked: {
			"P9", "an upgrade takes down the last member with the older version before an operator has resumed it",
		},
	}
}

// judge checks the promises that every world must keep, whatever the last event was.
func (m *rolloutMachine) judge(w *rolloutWorld) rolloutBreach {
	if w.state == rolloutDone && w.waiting != 0 {
		return rolloutDoneEarly
	}
	return 0
}

// judgeDecision checks an agent's decision at the time of its view.
func (m *rolloutMachine) judgeDecision(w *rolloutWorld, i int, d policy.Decision) rolloutBreach {
	requests := d.Notes.Request.Change == policy.RequestTurn
	switch {
	case d.Step.Kind == policy.StepNone && len(d.Reasons) == 0:
		return rolloutNoReason
	case (requests || d.Step.Kind == policy.StepBeginCycle) && w.state != rolloutRuns:
		return rolloutNotHalted
	case m.ignored != rolloutLeaderFirst && requests && i == int(w.leader) && w.hosts[i].slow == 0 &&
		m.othersFirst(w, i):
		return rolloutLeaderFirst
	}
	return 0
}

// othersFirst reports whether another host, whose agent runs and is not cut off, still waits for its operation.
func (m *rolloutMachine) othersFirst(w *rolloutWorld, i int) bool {
	for k := range m.hosts() {
		h := &w.hosts[k]
		if k != i && w.waiting>>k&1 != 0 && h.agentDown|h.hostDown|h.cutOff == 0 {
			return true
		}
	}
	return false
}

// judgeStop checks the world when a host is taken down.
func (m *rolloutMachine) judgeStop(w *rolloutWorld, i int, step uint8) rolloutBreach {
	for k := range m.hosts() {
		if k != i && w.hosts[k].down != 0 {
			return rolloutTwoDown
		}
	}
	if step != rolloutTakeDown && w.hosts[i].doneIn == w.hosts[i].begunIn {
		return rolloutHostTwice
	}
	if m.Upgrade && w.decided == 0 && m.isLastToUpgrade(w, i) {
		return rolloutNotAsked
	}
	return 0
}

// isLastToUpgrade reports whether a host has the only member with the older version.
func (m *rolloutMachine) isLastToUpgrade(w *rolloutWorld, i int) bool {
	for k := range rolloutVoters {
		if (w.hosts[k].upgraded == 0) != (k == i) {
			return false
		}
	}
	return true
}

// judgeEnd checks how the rollout continues after a host's operation ends.
func (m *rolloutMachine) judgeEnd(w *rolloutWorld, i int, outcome uint8, end policy.RolloutEnd) rolloutBreach {
	h := &w.hosts[i]
	worked := h.restarted != 0
	if m.Work == policy.WorkReboot {
		worked = w.sameBoot == 0
	}
	switch {
	case !end.HostDone:
		return 0
	case outcome != rolloutCycled || !worked:
		return rolloutDoneEarly
	case h.wrongVersion != 0:
		return rolloutWrongVersion
	}
	return 0
}

// isLive reports whether one fair run from a world ends as required. During the run, everything is healed and operators
// do nothing more. At its end no host is down or has a request, and the rollout is over or waits for an operator.
func (m *rolloutMachine) isLive(start *rolloutWorld) bool {
	w := *start
	w.faults, w.actions = 0, 0
	var path []rolloutWorld
	for range rolloutPasses {
		if m.live[w] {
			break
		}
		path = append(path, w)
		before := w
		m.pass(&w)
		if w == before {
			if !m.hasEnded(&w) {
				return false
			}
			break
		}
	}
	if len(path) == rolloutPasses {
		return false
	}
	for _, on := range path {
		m.live[on] = true
	}
	return true
}

// rolloutPasses bounds a liveness run.
const rolloutPasses = 200

// pass heals all faults, lets time pass, and lets every agent act once.
func (m *rolloutMachine) pass(w *rolloutWorld) {
	for i := range m.hosts() {
		h := &w.hosts[i]
		if h.hostDown != 0 {
			m.boots(w, i)
		}
		h.agentDown, h.cutOff, h.slow = 0, 0, 0
		if h.unit == starting {
			h.etcdServes()
		}
		if w.tidy(); h.pending != policy.RequestStays {
			m.write(w, i)
		}
		if int(w.lock) == i+1 && h.hasToken == 0 {
			w.lock = 0
		}
		if w.owns(i) && w.phase == phaseBack {
			w.servedLong = 1
		}
		w.cooledDown = bit(w.op == 0)
		if h.step == rolloutNone {
			m.round(w, i)
		}
		m.act(w, i, completed)
		w.tidy()
	}
}

func (m *rolloutMachine) hasEnded(w *rolloutWorld) bool {
	for i := range m.hosts() {
		h := &w.hosts[i]
		if h.work != noWork || h.pending != policy.RequestStays || i < rolloutVoters && h.unit != active {
			return false
		}
	}
	return w.op|w.lock == 0 && w.state != rolloutRuns
}
