// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package model

import (
	"math/bits"

	"github.com/quorumd/quorumd/agent/policy"
)

// lossBreach is a way to break a promise after quorum loss.
type lossBreach uint8

const (
	twoClustersServe lossBreach = iota + 1
	actsOutsidePlan
	movedAsideEarly
	copiedWhileRunning
	oldDataStarted
	unrecordedStarted
	planEndsEarly
	abortedPlanContinues
	shorterLogChosen
	neverRecovers
	lossNoReason
)

func lossPromises() map[lossBreach]promise {
	return map[lossBreach]promise{
		twoClustersServe:     {"P2", "two clusters serve at once"},
		actsOutsidePlan:      {"P4", "an agent acts against its plan or without one"},
		movedAsideEarly:      {"P3", "a host moves its data aside before the recovered cluster serves"},
		copiedWhileRunning:   {"P3", "data is copied while an etcd has it open"},
		oldDataStarted:       {"P4", "an etcd is started on its old data while a plan is in force"},
		unrecordedStarted:    {"P4", "an etcd is started on new data before its host has recorded its cluster"},
		planEndsEarly:        {"P4", "a host belongs to a recovered cluster that does not serve and may never do so"},
		abortedPlanContinues: {"P4", "an aborted plan is continued"},
		shorterLogChosen:     {"P3", "a plan uses a survivor whose log is not the most advanced"},
		neverRecovers: {
			"liveness",
			"all faults are healed and operators follow the documentation, but a host does not become a voter again",
		},
		lossNoReason: {"P8", "a decision has neither a step nor a reason"},
	}
}

// judge checks the promises that every world must keep, whatever the last event was.
func (m *lossMachine) judge(w *lossWorld) lossBreach {
	if bits.OnesCount8(m.serving(w)) > 1 {
		return twoClustersServe
	}
	for i := range m.Voters {
		if h := &w.hosts[i]; h.copying == copyRuns && h.runs != 0 {
			return copiedWhileRunning
		}
	}
	return 0
}

// judgePlan checks the latest plan: no host's log may be longer than the survivor's.
func (m *lossMachine) judgePlan(w *lossWorld) lossBreach {
	last := lossPlan{}
	for _, p := range w.plans {
		if p.survivor != 0 {
			last = p
		}
	}
	longer := 0 // number of hosts in the plan with a complete log
	for i := range m.Voters {
		longer += int(last.data >> i & 1 & bit(m.Behind != i+1))
	}
	if int(last.survivor) == m.Behind && longer > 0 {
		return shorterLogChosen
	}
	return 0
}

// judgeStep checks a decision against the host's plan.
func (m *lossMachine) judgeStep(w *lossWorld, i int, o *lossObservation, d policy.Decision, step uint8) lossBreach {
	h := &w.hosts[i]
	k := h.plan
	if d.Step.Kind == policy.StepNone && len(d.Reasons) == 0 {
		return lossNoReason
	}
	if k == 0 {
		return m.judgeWithoutPlan(h, o, step)
	}
	alone := int(w.plans[k-1].survivor) == i+1
	switch step {
	case lossStop, lossCopy, lossPlaceCopy, lossMoveAside:
		switch {
		case h.aborted != 0:
			return abortedPlanContinues
		case (step == lossCopy || step == lossPlaceCopy) && !alone, step == lossMoveAside && alone:
			return actsOutsidePlan
		case step == lossCopy && h.runs != 0:
			return copiedWhileRunning
		case step == lossMoveAside && o.cluster != recoveredCluster(k):
			return movedAsideEarly
		}
	case lossRecovered:
		if o.cluster != recoveredCluster(k) {
			return planEndsEarly
		}
	case lossStart:
		switch {
		case h.data == oldCluster && h.aborted == 0 && o.cluster != oldCluster:
			return oldDataStarted
		case h.data == recoveredCluster(k) && h.recorded != h.data:
			return unrecordedStarted
		}
	case lossJoin:
		return actsOutsidePlan
	}
	return 0
}

// judgeWithoutPlan checks the decision of a host without a plan. Such a host may start etcd on data of its recorded
// cluster or, if it has no data, join a recovered cluster. If it returns late to a recovery, it may only stop etcd,
// move its data aside while etcd is stopped, join, and record the recovered cluster.
func (m *lossMachine) judgeWithoutPlan(h *lossHost, o *lossObservation, step uint8) lossBreach {
	late := o.late != 0
	switch step {
	case lossNone:
		return 0
	case lossStop, lossRecovered:
		if late {
			return 0
		}
	case lossMoveAside:
		if late && h.runs == 0 {
			return 0
		}
	case lossStart:
		if !late && h.data != noCluster && h.data == h.recorded {
			return 0
		}
	case lossJoin:
		if o.cluster > oldCluster && h.data == noCluster && (h.recorded == noCluster || h.recorded == o.cluster) {
			return 0
		}
	}
	return actsOutsidePlan
}
