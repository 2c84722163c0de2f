// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package model

// lossPasses bounds a liveness run.
const lossPasses = 200

// isLive reports whether one fair run from a world ends as required. In the run, everything is healed, agents act, and
// operators follow the documentation. At its end every host is a voter again, or the old quorum is back.
func (m *lossMachine) isLive(start *lossWorld) bool {
	w := *start
	w.faults = 0
	var path []lossWorld
	for range lossPasses {
		if m.live[w] {
			break
		}
		path = append(path, w)
		before := w
		m.pass(&w)
		if w == before {
			if !m.hasRecovered(&w) {
				return false
			}
			break
		}
	}
	if len(path) == lossPasses {
		return false
	}
	for _, on := range path {
		m.live[on] = true
	}
	return true
}

// pass heals all faults, lets every agent act once, and lets operators take their next action.
func (m *lossMachine) pass(w *lossWorld) {
	for i := range m.Voters {
		h := &w.hosts[i]
		h.cutOff, h.agentDown = 0, 0
		if h.hostDown != 0 {
			h.boot()
		}
		m.markStalePlans(w)
		if h.copying == copyRuns {
			h.copying = copyFailed
			if to, ok := m.completeCopy(w, i); ok {
				*w = to
			}
		}
		if h.step == lossNone {
			o := m.observe(w, i)
			h.step, _ = lossStepOf(m.decide(&o).Step)
			if h.stepPlan = h.plan; o.late != 0 {
				h.stepPlan = withoutPlan + o.cluster
			}
		}
		if h.step != lossNone {
			*w = m.act(w, i)[0]
		}
		m.markStalePlans(w)
	}
	m.operatorsContinue(w)
	m.markStalePlans(w)
}

// operatorsContinue aborts plans that make no progress, and makes or applies a plan if no cluster serves.
func (m *lossMachine) operatorsContinue(w *lossWorld) {
	serving := m.serving(w)
	for i := range m.Voters {
		h := &w.hosts[i]
		k := h.plan
		if k == 0 || h.aborted != 0 || serving>>recoveredCluster(k)&1 != 0 || serving>>oldCluster&1 != 0 {
			continue
		}
		s := &w.hosts[w.plans[k-1].survivor-1]
		stuck := h.copying != copyNone && w.plans[k-1].stale != 0
		if serving != 0 || s.plan != k && s.lastPlan != k || stuck {
			if to, ok := w.abort(i); ok {
				*w = to
			}
		}
	}
	if serving != 0 {
		return
	}
	for k := uint8(maxPlans); k > 0; k-- {
		p := w.plans[k-1]
		if p.survivor == 0 {
			continue
		}
		s := &w.hosts[p.survivor-1]
		if s.plan == k || s.lastPlan == k {
			return // the plan is in progress
		}
		if to, ok := m.apply(w, int(p.survivor)-1, k); ok && s.plan == 0 {
			*w = to
			return
		}
	}
	if to, ok := m.plan(w, 1); ok {
		*w = to
	}
}

// hasRecovered reports whether no host has a plan left, and every host is a voter of the recovered cluster or, if the
// old cluster serves, every host with its data runs etcd.
func (m *lossMachine) hasRecovered(w *lossWorld) bool {
	c := m.reachedCluster(w, 0)
	for i := range m.Voters {
		h := &w.hosts[i]
		switch {
		case c == noCluster, h.plan != 0:
			return false
		case c == oldCluster: // operators remove the member of a host with a new disk
			if h.recorded > oldCluster || h.data > oldCluster || h.data == oldCluster && h.runs == 0 {
				return false
			}
		case h.data != c || h.recorded != c || h.runs == 0:
			return false
		}
	}
	return true
}
