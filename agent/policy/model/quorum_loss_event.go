// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package model

import (
	"fmt"

	"github.com/quorumd/quorumd/agent/policy"
)

// The steps that an agent may have decided on.
const (
	lossNone uint8 = iota
	lossStop
	lossCopy
	lossPlaceCopy
	lossMoveAside
	lossRecovered
	lossQuorumRestored
	lossPlanAborted
	lossStart
	lossJoin
)

// withoutPlan is added to the cluster that a late host has reached, to distinguish it from a plan in stepPlan.
const withoutPlan = 8

func lossStepOf(s policy.Step) (step uint8, known bool) {
	simple := map[policy.StepKind]uint8{
		policy.StepNone: lossNone, policy.StepStopForRecovery: lossStop, policy.StepCopyData: lossCopy,
		policy.StepPlaceCopy: lossPlaceCopy, policy.StepLayAside: lossMoveAside, policy.StepStartUnit: lossStart,
		policy.StepTakeLock: lossJoin,
	}
	if s.Kind == policy.StepEndRecovery {
		ends := map[policy.ReasonCode]uint8{
			policy.Recovered: lossRecovered, policy.QuorumRestored: lossQuorumRestored,
			policy.RecoveryGivenUp: lossPlanAborted,
		}
		step, known = ends[s.Outcome]
		return step, known
	}
	step, known = simple[s.Kind]
	return step, known
}

// successors returns all worlds that can follow w.
func (m *lossMachine) successors(w *lossWorld) []successor[lossWorld] {
	var all []successor[lossWorld]
	add := func(to lossWorld, found lossBreach, what string, args ...any) {
		if to == *w && found == 0 {
			return
		}
		m.markStalePlans(&to)
		if found == 0 {
			found = m.judge(&to)
		}
		all = append(all, successor[lossWorld]{to, fmt.Sprintf(what, args...), uint8(found)})
	}
	for i := range m.Voters {
		m.agentActs(w, i, add)
		m.failures(w, i, add)
		m.operatorActs(w, i, add)
	}
	if to, ok := m.plan(w, 0); ok {
		add(to, m.judgePlan(&to), "operators make a plan")
	}
	return all
}

type lossAdder func(to lossWorld, found lossBreach, what string, args ...any)

// agentActs lets an agent decide, or carry out its decision, and lets its copy fail or complete.
func (m *lossMachine) agentActs(w *lossWorld, i int, add lossAdder) {
	h := &w.hosts[i]
	name := hostName(i)
	if h.copying == copyRuns {
		to := *w
		to.hosts[i].copying = copyFailed
		add(to, 0, "the copy on %s fails", name)
		if to, ok := m.completeCopy(w, i); ok {
			add(to, 0, "the copy on %s is complete", name)
		}
	}
	switch {
	case h.agentDown|h.hostDown != 0:
	case h.step == lossNone:
		o := m.observe(w, i)
		d := m.decide(&o)
		step, known := lossStepOf(d.Step)
		to := *w
		to.hosts[i].step = step
		to.hosts[i].stepPlan = h.plan
		if d.Notes.StartGuard == policy.GuardSet && h.data != noCluster { // without data, etcd could not start anyway
			to.hosts[i].startGuard = 1
		}
		if o.late != 0 {
			to.hosts[i].stepPlan = withoutPlan + o.cluster
		}
		found := m.judgeStep(w, i, &o, d, step)
		if !known && found == 0 {
			found = actsOutsidePlan
		}
		add(to, found, "%s decides: %s %s", name, d.Step.Kind, d.Step.Outcome)
	default:
		for _, to := range m.act(w, i) {
			add(to, 0, "%s carries out its step", name)
		}
	}
}

// completeCopy completes a copy if the data is still as planned.
func (m *lossMachine) completeCopy(w *lossWorld, i int) (to lossWorld, ok bool) {
	h := &w.hosts[i]
	to = *w
	if h.runs != 0 || h.plan == 0 {
		return to, false
	}
	if h.copyOf != h.plan && (h.data != oldCluster || w.plans[h.plan-1].stale != 0 && !m.copiesBlindly) {
		return to, false
	}
	to.hosts[i].copying, to.hosts[i].copyOf = copyDone, h.plan
	return to, true
}

// act returns the outcomes of a step: completed, or interrupted by a crash.
func (m *lossMachine) act(w *lossWorld, i int) []lossWorld {
	to := *w
	h := &to.hosts[i]
	step, on := h.step, h.stepPlan
	h.step, h.stepPlan = lossNone, 0
	stands := h.plan != 0 && h.plan == on && h.aborted == 0
	switch step {
	case lossStop:
		h.startGuard, h.runs, h.failed = 1, 0, 0
	case lossCopy:
		h.startGuard = 1
		if stands && h.copying != copyRuns {
			h.copying = copyRuns
		}
	case lossPlaceCopy:
		return m.place(&to, i, stands)
	case lossMoveAside:
		h.startGuard = 1
		if h.runs != 0 || on < withoutPlan && !stands {
			break
		}
		h.movingAside = bit(stands)
		h.data = noCluster
	case lossRecovered, lossQuorumRestored, lossPlanAborted:
		m.endPlan(&to, i, step, on)
	case lossStart:
		h.startGuard, h.failed = 0, 0
		h.runs = bit(h.data != noCluster)
	case lossJoin:
		if c := m.reachedCluster(w, i); c != noCluster && w.mayJoin(i, c) {
			h.data, h.recorded, h.runs, h.startGuard, h.failed = c, c, 1, 0, 0
		}
	}
	return []lossWorld{to}
}

// place replaces the old data with the copy. A crash may interrupt the step between any two of its actions.
func (m *lossMachine) place(to *lossWorld, i int, stands bool) []lossWorld {
	h := &to.hosts[i]
	placedBefore := h.plan != 0 && h.data == recoveredCluster(h.plan) // only the record is missing
	if !stands || h.copyOf != h.plan || h.runs != 0 && !placedBefore {
		return []lossWorld{*to}
	}
	h.movingAside = 1
	begun := *to
	h.data = noCluster
	moved := *to
	h.data = recoveredCluster(h.plan)
	placed := *to
	h.recorded = h.data
	all := []lossWorld{*to}
	for _, crashed := range []lossWorld{begun, moved, placed} {
		if !placedBefore {
			crashed.hosts[i].copying, crashed.hosts[i].agentDown = copyNone, 1
			all = append(all, crashed)
		}
	}
	return all
}

// endPlan ends a plan on a host, or records the cluster that a late host has reached.
func (m *lossMachine) endPlan(to *lossWorld, i int, step, on uint8) {
	h := &to.hosts[i]
	if on > withoutPlan { // a plan accepted since then remains in force
		h.recorded = on - withoutPlan
		return
	}
	if h.plan != on {
		return
	}
	switch {
	case step == lossRecovered && int(to.plans[on-1].survivor) == i+1:
		to.announced[on-1], h.lastPlan = 1, on
	case step == lossRecovered:
		h.recorded, h.lastPlan = recoveredCluster(on), on
	}
	h.plan, h.movingAside, h.aborted, h.copying = 0, 0, 0, copyNone
}

// failures adds the worlds in which a host, its etcd or its agent crashes, is cut off, or recovers from that.
func (m *lossMachine) failures(w *lossWorld, i int, add lossAdder) {
	h, name := w.hosts[i], hostName(i)
	change := func(what string, costs bool, do func(h *lossHost)) {
		to := *w
		do(&to.hosts[i])
		if costs {
			to.faults++
		}
		add(to, 0, "%s %s", name, what)
	}
	if h.hostDown != 0 {
		change("boots", false, func(h *lossHost) { h.boot() })
		return
	}
	if h.agentDown != 0 {
		change("restarts its agent", false, func(h *lossHost) { h.agentDown = 0 })
	}
	if h.cutOff != 0 {
		change("is reachable again", false, func(h *lossHost) { h.cutOff = 0 })
	}
	if int(w.faults) >= m.Budget {
		return
	}
	change("loses power", true, func(h *lossHost) {
		h.agentDies()
		h.runs, h.failed, h.hostDown = 0, 0, 1
	})
	change("loses its agent process", true, func(h *lossHost) { h.agentDies() })
	if h.runs != 0 {
		change("loses its etcd process", true, func(h *lossHost) { h.runs, h.failed = 0, 1 })
	}
	if h.cutOff == 0 {
		change("is cut off", true, func(h *lossHost) { h.cutOff = 1 })
	}
}

func (h *lossHost) agentDies() { h.agentDown, h.step, h.stepPlan, h.copying = 1, lossNone, 0, copyNone }

// boot applies the boot of a host. If the host has data, its etcd starts unless the start guard is set.
func (h *lossHost) boot() {
	h.hostDown, h.agentDown = 0, 0
	h.runs = bit(h.data != noCluster && h.startGuard == 0)
}

// operatorActs adds the worlds in which an operator has applied a plan to a host, or aborted one.
func (m *lossMachine) operatorActs(w *lossWorld, i int, add lossAdder) {
	h := &w.hosts[i]
	if h.agentDown|h.hostDown != 0 {
		return
	}
	for k := range uint8(maxPlans) {
		if to, ok := m.apply(w, i, k+1); ok {
			add(to, 0, "%s accepts plan %d", hostName(i), k+1)
		}
	}
	if to, ok := w.abort(i); ok {
		add(to, 0, "%s aborts its plan", hostName(i))
	}
}

func (w *lossWorld) abort(i int) (to lossWorld, ok bool) {
	to = *w
	h := &to.hosts[i]
	if h.plan == 0 || h.movingAside|h.aborted != 0 {
		return to, false
	}
	h.aborted = 1
	if h.copying == copyRuns {
		h.copying = copyFailed
	}
	return to, true
}

// apply offers a plan to a host, and reports whether the host accepts it.
func (m *lossMachine) apply(w *lossWorld, i int, k uint8) (to lossWorld, ok bool) {
	to = *w
	h, p := &to.hosts[i], w.plans[k-1]
	if p.survivor == 0 || h.plan != 0 || h.lastPlan == k {
		return to, false
	}
	shown := policy.OfferedPlan{Cluster: "model", Now: m.remains(w, i, h.data, p.stale)}
	if p.hosts>>i&1 != 0 {
		own := m.remains(w, i, oldCluster*(p.data>>i&1), 0)
		shown.Own = &own
	}
	if m.offered != nil {
		m.offered(&shown)
	}
	if policy.PlanRefused(shown) != "" {
		return to, false
	}
	h.plan = k
	return to, true
}

// plan lets operators make the next plan from the hosts that they reach, if the policy allows it. They make no plan if
// the survivor of an earlier plan is unreachable, carries out that plan, or has completed it. more is the number of
// plans that a liveness run may make beyond the scope's limit.
func (m *lossMachine) plan(w *lossWorld, more int) (to lossWorld, ok bool) {
	to = *w
	next := 0
	for next < maxPlans && w.plans[next].survivor != 0 {
		s := &w.hosts[w.plans[next].survivor-1]
		if s.hostDown|s.agentDown|s.cutOff != 0 || int(s.plan) == next+1 || int(s.lastPlan) == next+1 {
			return to, false
		}
		next++
	}
	if next >= min(maxPlans, m.Plans+more) {
		return to, false
	}
	p := &to.plans[next]
	var all []policy.HostRemains
	var at []int
	choice := policy.RecoveryChoice{Cluster: "model"}
	for i := range m.Voters {
		h := &w.hosts[i]
		if h.hostDown|h.agentDown|h.cutOff != 0 {
			choice.Gone = append(choice.Gone, hostName(i))
			continue
		}
		own := m.remains(w, i, h.data, 0)
		if m.report != nil {
			m.report(&own)
		}
		all, at = append(all, own), append(at, i)
		p.hosts |= 1 << i
		p.data |= bit(h.data == oldCluster) << i
	}
	for i := range m.Voters { // a host with a new disk sends a report, but its member does not return
		if w.hosts[i].data == noCluster {
			choice.Gone = append(choice.Gone, hostName(i))
		}
	}
	decided := policy.PlanRecovery(all, choice)
	if decided.Doubt != nil {
		return to, false
	}
	p.survivor = uint8(at[decided.Survivor] + 1)
	return to, true
}
