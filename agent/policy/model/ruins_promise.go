// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package model

import (
	"math/bits"

	"github.com/quorumd/quorumd/agent/policy"
)

// ruinBreach is a way to break a promise after quorum loss.
type ruinBreach uint8

const (
	twoServe ruinBreach = iota + 1
	actsOtherwise
	partsEarly
	copiedOpen
	oldStarted
	unnotedStarted
	endsEarly
	givenUpGoesOn
	writesLost
	neverBack
	wordsMissing
)

func ruinPromises() map[ruinBreach]promise {
	return map[ruinBreach]promise{
		twoServe:       {"P2", "two clusters serve at once"},
		actsOtherwise:  {"P4", "an agent acts against its plan or without one"},
		partsEarly:     {"P3", "a host moves its data aside before the recovered cluster serves"},
		copiedOpen:     {"P3", "data is copied while an etcd has it open"},
		oldStarted:     {"P4", "an etcd is started on its old data while a plan is in force"},
		unnotedStarted: {"P4", "an etcd is started on new data before its host has recorded its cluster"},
		endsEarly:      {"P4", "a host belongs to a recovered cluster that does not serve and may never do so"},
		givenUpGoesOn:  {"P4", "an aborted plan is continued"},
		writesLost:     {"P3", "a plan uses a survivor whose log is not the most advanced"},
		neverBack:      {"liveness", "all is healed, operators have done their part, and a host is not a voter again"},
		wordsMissing:   {"P8", "a decision has neither a step nor a reason"},
	}
}

// judge checks a world.
func (m *ruinMachine) judge(w *ruins) ruinBreach {
	if bits.OnesCount8(m.serving(w)) > 1 {
		return twoServe
	}
	for i := range m.Voters {
		if h := &w.hosts[i]; h.copying == copyRuns && h.runs != 0 {
			return copiedOpen
		}
	}
	return 0
}

// judgePlan checks the latest plan: no host's log may be longer than the survivor's.
func (m *ruinMachine) judgePlan(w *ruins) ruinBreach {
	last := planned{}
	for _, p := range w.plans {
		if p.survivor != 0 {
			last = p
		}
	}
	longer := 0 // a host that has everything
	for i := range m.Voters {
		longer += int(last.data >> i & 1 & bit(m.Behind != i+1))
	}
	if int(last.survivor) == m.Behind && longer > 0 {
		return writesLost
	}
	return 0
}

// judgeStep checks a decision.
func (m *ruinMachine) judgeStep(w *ruins, i int, o *outlook, d policy.Decision, step uint8) ruinBreach {
	h := &w.hosts[i]
	k := h.plan
	if d.Step.Kind == policy.StepNone && len(d.Reasons) == 0 {
		return wordsMissing
	}
	if k == 0 {
		return m.judgeUnplanned(h, o, step)
	}
	alone := int(w.plans[k-1].survivor) == i+1
	switch step {
	case ruinStop, ruinCopy, ruinPlace, ruinAside:
		switch {
		case h.givenUp != 0:
			return givenUpGoesOn
		case (step == ruinCopy || step == ruinPlace) && !alone, step == ruinAside && alone:
			return actsOtherwise
		case step == ruinCopy && h.runs != 0:
			return copiedOpen
		case step == ruinAside && o.seen != made(k):
			return partsEarly
		}
	case ruinRecovered:
		if o.seen != made(k) {
			return endsEarly
		}
	case ruinStart:
		switch {
		case h.data == oldCluster && h.givenUp == 0 && o.seen != oldCluster:
			return oldStarted
		case h.data == made(k) && h.noted != h.data:
			return unnotedStarted
		}
	case ruinJoin:
		return actsOtherwise
	}
	return 0
}

// judgeUnplanned checks the decision of a host without a plan: it starts the member it belongs to, joins its cluster,
// or makes way for the cluster that replaces its own.
func (m *ruinMachine) judgeUnplanned(h *survived, o *outlook, step uint8) ruinBreach {
	late := o.late != 0
	switch step {
	case ruinNone:
		return 0
	case ruinStop, ruinRecovered:
		if late {
			return 0
		}
	case ruinAside:
		if late && h.runs == 0 {
			return 0
		}
	case ruinStart:
		if !late && h.data != nowhere && h.data == h.noted {
			return 0
		}
	case ruinJoin:
		if o.seen > oldCluster && h.data == nowhere && (h.noted == nowhere || h.noted == o.seen) {
			return 0
		}
	}
	return actsOtherwise
}
