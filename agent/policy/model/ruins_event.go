// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package model

import (
	"fmt"

	"github.com/quorumd/quorumd/agent/policy"
)

// The steps that an agent may have decided on.
const (
	ruinNone uint8 = iota
	ruinStop
	ruinCopy
	ruinPlace
	ruinAside
	ruinRecovered
	ruinBack
	ruinGivenUp
	ruinStart
	ruinJoin
)

// unplanned is added to the cluster in whose favour a late host acts, where other hosts have their plan.
const unplanned = 8

func ruinStep(s policy.Step) (step uint8, known bool) {
	simple := map[policy.StepKind]uint8{
		policy.StepNone: ruinNone, policy.StepStopForRecovery: ruinStop, policy.StepCopyData: ruinCopy,
		policy.StepPlaceCopy: ruinPlace, policy.StepLayAside: ruinAside, policy.StepStartUnit: ruinStart,
		policy.StepTakeLock: ruinJoin,
	}
	if s.Kind == policy.StepEndRecovery {
		ends := map[policy.ReasonCode]uint8{
			policy.Recovered: ruinRecovered, policy.QuorumRestored: ruinBack, policy.RecoveryGivenUp: ruinGivenUp,
		}
		step, known = ends[s.Outcome]
		return step, known
	}
	step, known = simple[s.Kind]
	return step, known
}

// follow returns all worlds that may follow one.
func (m *ruinMachine) follow(w *ruins) []next[ruins] {
	var all []next[ruins]
	add := func(to ruins, found ruinBreach, what string, args ...any) {
		if to == *w && found == 0 {
			return
		}
		m.settle(&to)
		if found == 0 {
			found = m.judge(&to)
		}
		all = append(all, next[ruins]{to, fmt.Sprintf(what, args...), uint8(found)})
	}
	for i := range m.Voters {
		m.agentActs(w, i, add)
		m.goesWrong(w, i, add)
		m.peopleDo(w, i, add)
	}
	if to, ok := m.plan(w, 0); ok {
		add(to, m.judgePlan(&to), "operators make a plan")
	}
	return all
}

type adder func(to ruins, found ruinBreach, what string, args ...any)

// agentActs lets an agent decide, or carry out its decision.
func (m *ruinMachine) agentActs(w *ruins, i int, add adder) {
	h := &w.hosts[i]
	name := hostName(i)
	if h.copying == copyRuns {
		to := *w
		to.hosts[i].copying = copyBroken
		add(to, 0, "the copy of %s fails", name)
		if to, ok := m.copied(w, i); ok {
			add(to, 0, "the copy of %s is whole", name)
		}
	}
	switch {
	case h.dead|h.off != 0:
	case h.step == ruinNone:
		o := m.look(w, i)
		d := m.decide(&o)
		step, known := ruinStep(d.Step)
		to := *w
		to.hosts[i].step = step
		to.hosts[i].on = h.plan
		if d.Notes.StartGuard == policy.GuardSet && h.data != nowhere { // without data nothing could start
			to.hosts[i].held = 1
		}
		if o.late != 0 {
			to.hosts[i].on = unplanned + o.seen
		}
		found := m.judgeStep(w, i, &o, d, step)
		if !known && found == 0 {
			found = actsOtherwise
		}
		add(to, found, "%s decides: %s %s", name, d.Step.Kind, d.Step.Outcome)
	default:
		for _, to := range m.act(w, i) {
			add(to, 0, "%s carries out its step", name)
		}
	}
}

// copied completes a copy, if the data still belongs to the plan.
func (m *ruinMachine) copied(w *ruins, i int) (to ruins, ok bool) {
	h := &w.hosts[i]
	to = *w
	if h.runs != 0 || h.plan == 0 {
		return to, false
	}
	if h.whole != h.plan && (h.data != oldCluster || w.plans[h.plan-1].stale != 0 && !m.blind) {
		return to, false
	}
	to.hosts[i].copying, to.hosts[i].whole = copyDone, h.plan
	return to, true
}

// act returns the outcomes of a step: completed, or cut short by a crash.
func (m *ruinMachine) act(w *ruins, i int) []ruins {
	to := *w
	h := &to.hosts[i]
	step, on := h.step, h.on
	h.step, h.on = ruinNone, 0
	stands := h.plan != 0 && h.plan == on && h.givenUp == 0
	switch step {
	case ruinStop:
		h.held, h.runs, h.failed = 1, 0, 0
	case ruinCopy:
		h.held = 1
		if stands && h.copying != copyRuns {
			h.copying = copyRuns
		}
	case ruinPlace:
		return m.place(&to, i, stands)
	case ruinAside:
		h.held = 1
		if h.runs != 0 || on < unplanned && !stands {
			break
		}
		h.parted = bit(stands)
		h.data = nowhere
	case ruinRecovered, ruinBack, ruinGivenUp:
		m.endPlan(&to, i, step, on)
	case ruinStart:
		h.held, h.failed = 0, 0
		h.runs = bit(h.data != nowhere)
	case ruinJoin:
		if c := m.seen(w, i); c != nowhere && w.mayJoin(i, c) {
			h.data, h.noted, h.runs, h.held, h.failed = c, c, 1, 0, 0
		}
	}
	return []ruins{to}
}

// place moves the old data aside and puts the copy in its place. It may be cut short between any two of its parts.
func (m *ruinMachine) place(to *ruins, i int, stands bool) []ruins {
	h := &to.hosts[i]
	there := h.plan != 0 && h.data == made(h.plan) // and only has to be recorded
	if !stands || h.whole != h.plan || h.runs != 0 && !there {
		return []ruins{*to}
	}
	h.parted = 1
	parted := *to
	h.data = nowhere
	moved := *to
	h.data = made(h.plan)
	placed := *to
	h.noted = h.data
	all := []ruins{*to}
	for _, short := range []ruins{parted, moved, placed} {
		if !there {
			short.hosts[i].copying, short.hosts[i].dead = copyNone, 1
			all = append(all, short)
		}
	}
	return all
}

// endPlan ends a host's part.
func (m *ruinMachine) endPlan(to *ruins, i int, step, on uint8) {
	h := &to.hosts[i]
	if on > unplanned { // a plan obeyed since then remains in force
		h.noted = on - unplanned
		return
	}
	if h.plan != on {
		return
	}
	switch {
	case step == ruinRecovered && int(to.plans[on-1].survivor) == i+1:
		to.announced[on-1], h.last = 1, on
	case step == ruinRecovered:
		h.noted, h.last = made(on), on
	}
	h.plan, h.parted, h.givenUp, h.copying = 0, 0, 0, copyNone
}

// goesWrong crashes a host, its etcd or its agent, cuts it off, and undoes that.
func (m *ruinMachine) goesWrong(w *ruins, i int, add adder) {
	h, name := w.hosts[i], hostName(i)
	change := func(what string, costs bool, do func(h *survived)) {
		to := *w
		do(&to.hosts[i])
		if costs {
			to.spent++
		}
		add(to, 0, "%s", name+" "+what)
	}
	if h.off != 0 {
		change("is switched on", false, func(h *survived) { h.boot() })
		return
	}
	if h.dead != 0 {
		change("has its agent back", false, func(h *survived) { h.dead = 0 })
	}
	if h.apart != 0 {
		change("is reached again", false, func(h *survived) { h.apart = 0 })
	}
	if int(w.spent) >= m.Budget {
		return
	}
	change("loses its power", true, func(h *survived) {
		h.die()
		h.runs, h.failed, h.off = 0, 0, 1
	})
	change("loses its agent", true, func(h *survived) { h.die() })
	if h.runs != 0 {
		change("loses its etcd", true, func(h *survived) { h.runs, h.failed = 0, 1 })
	}
	if h.apart == 0 {
		change("is cut off", true, func(h *survived) { h.apart = 1 })
	}
}

func (h *survived) die() { h.dead, h.step, h.on, h.copying = 1, ruinNone, 0, copyNone }

// boot starts a host. Its etcd starts unless the start guard holds it back.
func (h *survived) boot() {
	h.off, h.dead = 0, 0
	h.runs = bit(h.data != nowhere && h.held == 0)
}

// peopleDo makes a host obey a plan, or give one up.
func (m *ruinMachine) peopleDo(w *ruins, i int, add adder) {
	h := &w.hosts[i]
	if h.dead|h.off != 0 {
		return
	}
	for k := range uint8(maxPlans) {
		if to, ok := m.apply(w, i, k+1); ok {
			add(to, 0, "%s receives plan %d", hostName(i), k+1)
		}
	}
	if to, ok := w.giveUp(i); ok {
		add(to, 0, "%s aborts its plan", hostName(i))
	}
}

func (w *ruins) giveUp(i int) (to ruins, ok bool) {
	to = *w
	h := &to.hosts[i]
	if h.plan == 0 || h.parted|h.givenUp != 0 {
		return to, false
	}
	h.givenUp = 1
	if h.copying == copyRuns {
		h.copying = copyBroken
	}
	return to, true
}

// apply offers a plan to a host, which obeys it or not.
func (m *ruinMachine) apply(w *ruins, i int, k uint8) (to ruins, ok bool) {
	to = *w
	h, p := &to.hosts[i], w.plans[k-1]
	if p.survivor == 0 || h.plan != 0 || h.last == k {
		return to, false
	}
	shown := policy.OfferedPlan{Cluster: "model", Now: m.remains(w, i, h.data, p.stale)}
	if p.facts>>i&1 != 0 {
		own := m.remains(w, i, oldCluster*(p.data>>i&1), 0)
		shown.Own = &own
	}
	if m.shown != nil {
		m.shown(&shown)
	}
	if policy.PlanRefused(shown) != "" {
		return to, false
	}
	h.plan = k
	return to, true
}

// plan lets operators make the next plan from the hosts they reach, if the policy allows it. They make none while the
// survivor of an earlier plan obeys that one or has not been asked. The additional plan beyond the scope's limit is for
// a run to rest.
func (m *ruinMachine) plan(w *ruins, more int) (to ruins, ok bool) {
	to = *w
	next := 0
	for next < maxPlans && w.plans[next].survivor != 0 {
		s := &w.hosts[w.plans[next].survivor-1]
		if s.off|s.dead|s.apart != 0 || int(s.plan) == next+1 || int(s.last) == next+1 {
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
	wish := policy.RecoveryChoice{Cluster: "model"}
	for i := range m.Voters {
		h := &w.hosts[i]
		if h.off|h.dead|h.apart != 0 {
			wish.Gone = append(wish.Gone, hostName(i))
			continue
		}
		own := m.remains(w, i, h.data, 0)
		if m.tell != nil {
			m.tell(&own)
		}
		all, at = append(all, own), append(at, i)
		p.facts |= 1 << i
		p.data |= bit(h.data == oldCluster) << i
	}
	for i := range m.Voters { // a host with a new disk has facts, and no member that comes back
		if w.hosts[i].data == nowhere {
			wish.Gone = append(wish.Gone, hostName(i))
		}
	}
	decided := policy.PlanRecovery(all, wish)
	if decided.Doubt != nil {
		return to, false
	}
	p.survivor = uint8(at[decided.Survivor] + 1)
	return to, true
}
