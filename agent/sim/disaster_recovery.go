// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"cmp"
	"context"
	"encoding/json"
	"slices"
	"time"

	"github.com/quorumd/quorumd/agent/control"
	"github.com/quorumd/quorumd/agent/hoststate"
	"github.com/quorumd/quorumd/agent/record"
	"github.com/quorumd/quorumd/agent/recovery"
)

// advanceRecovery lets operators take the next step of the recovery, and may kill an agent or cut a host's power.
func (w *world) advanceRecovery() {
	r := &w.recovery
	switch {
	case !r.lost:
		return
	case w.isRecovered() && w.removeMemberWithoutData():
		r.lost = false
		w.event(nil, eventFault, 73, "operators finish the recovery")
		return
	case w.isRecovered():
	case w.etcd.hasLeader() && w.etcd.predecessor != nil:
		w.abandonOtherPlans()
	case r.plan != nil && chance(w.draw(74), 6):
		w.abandonPlan("operators no longer want it")
	case r.plan != nil:
		w.applyPlan()
	case len(r.facts) > 0 && w.now()-r.asked > 20*time.Second:
		w.makePlan()
	default:
		w.requestFacts()
	}
	w.disturbRecovery()
	w.after(between(w.draw(75), 5*time.Second, 2*time.Minute), laneFaults, w.advanceRecovery)
}

// isRecovered reports whether a cluster serves and no host has a plan to carry out.
func (w *world) isRecovered() bool {
	for _, h := range w.hosts {
		if h.planInForce() != nil {
			return false
		}
	}
	return w.etcd.hasLeader()
}

// abandonOtherPlans abandons all plans in force except the one that recovered the cluster.
func (w *world) abandonOtherPlans() {
	for _, h := range w.hosts {
		if k := h.planInForce(); k != nil && uint64(k.New) != w.etcd.clusterID {
			w.abandonPlanOn(h)
		}
	}
}

// removeMemberWithoutData requests the removal of a member whose data is lost. If the old quorum has returned, only
// operators can remove that member. It returns true, and requests nothing, if every member has its data.
func (w *world) removeMemberWithoutData() bool {
	i := slices.IndexFunc(w.etcd.members, func(m *member) bool { return m.name != "" && !m.host.data.belongsTo(m) })
	if i < 0 {
		return true
	}
	h := w.hosts[w.draw(83)%uint64(len(w.hosts))]
	req := control.RemovalRequest{
		Member: record.MemberID(w.etcd.members[i].id).String(), Reason: "its disk is new",
		For: control.Duration(10 * time.Minute),
	}
	w.operator(h, func(ctx context.Context, p *process) {
		_, err := p.agent.RemoveMember(ctx, req, "an operator")
		w.mu.Lock()
		defer w.mu.Unlock()
		w.event(h, eventFault, 83, "removal of member %s requested: its disk is new; error: %v", req.Member, err)
	})
	return false
}

// planInForce returns the plan that a host's agent has recorded, or nil.
func (h *host) planInForce() *hoststate.Recovery {
	text, err := h.files.read(stateDir + "/recovery.json")
	if err != nil {
		return nil
	}
	var recorded hoststate.Recoveries
	if err := json.Unmarshal(text, &recorded); err != nil {
		h.world.promises.breach("P8", h, "the recorded plan cannot be read: "+err.Error())
	}
	return recorded.Recovery
}

// disturbRecovery kills an agent, cuts a host's power, or does nothing.
func (w *world) disturbRecovery() {
	h := w.hosts[w.draw(76)%uint64(len(w.hosts))]
	switch drawn := w.draw(77); {
	case w.healed || h.dead || !h.powered:
	case chance(drawn, 30):
		h.kill()
		w.after(between(drawn, time.Second, 20*time.Second), laneFaults, h.restartAgent)
	case chance(drawn, 40):
		h.losePower()
		w.after(between(drawn, time.Second, time.Minute), laneFaults, h.powerUp)
	}
}

// requestFacts lets operators request the facts of every host.
func (w *world) requestFacts() {
	r := &w.recovery
	facts := map[int]recovery.Facts{} // answers to an earlier request are ignored
	r.asked, r.facts = w.now(), facts
	for _, h := range w.hosts {
		w.operator(h, func(ctx context.Context, p *process) {
			f, err := p.agent.RecoveryFacts(ctx)
			w.mu.Lock()
			defer w.mu.Unlock()
			w.event(h, eventFault, 76, "reports its facts: entry %d of term %d, quorum %v: %v", f.Log.Index,
				f.Log.Term, f.Quorum, err)
			if err == nil {
				facts[h.index] = f
			}
		})
	}
}

// makePlan makes a plan from the reported facts. It declares as gone every voter without facts. If a host that reported
// no facts is up and has data, it makes no plan.
func (w *world) makePlan() {
	r := &w.recovery
	var all []recovery.Facts
	for _, h := range w.hosts {
		f, ok := r.facts[h.index]
		if ok {
			all = append(all, f)
		} else if h.powered && h.data.member != 0 { // the host is up, and may have the longest log
			r.facts = nil
			return
		}
	}
	choice := recovery.Choice{
		Cluster: "sim", At: w.began.Add(w.now()), ID: planID(w.draw(78)), New: record.MemberID(w.draw(79) | 1),
	}
	for _, m := range recovery.Missing(all) {
		choice.Gone = append(choice.Gone, cmp.Or(m.Name, m.ID.String()))
	}
	for _, h := range w.hosts {
		if h.dead {
			choice.KeptOff = append(choice.KeptOff, h.name)
		}
	}
	plan, err := recovery.NewPlan(all, choice)
	r.facts = nil
	if err != nil {
		w.event(nil, eventFault, 77, "%v", err)
		for _, h := range w.hosts { // a plan that is still in force should have been abandoned
			if h.planInForce() != nil {
				w.abandonPlanOn(h)
			}
		}
		return
	}
	r.plan, r.applied, r.refused = &plan, map[int]bool{}, 0
	r.plans++
	w.event(nil, eventFault, 78, "plan %s: survivor %s continues as %x; lost: %v", plan.ID,
		plan.FactsOf(plan.Survivor).Host, uint64(plan.New), plan.Gone)
	w.promises.checkPlan(plan)
}

// planID returns a plan ID made from a random number.
func planID(drawn uint64) string {
	id := make([]byte, 12)
	for i := range id {
		id[i] = 'a' + byte(drawn%26)
		drawn /= 26
	}
	return string(id)
}

// applyPlan applies the plan to a random host that has not applied it yet. It abandons a plan that hosts refuse
// repeatedly.
func (w *world) applyPlan() {
	r := &w.recovery
	var next []*host
	for _, h := range w.hosts {
		if r.plan.FactsOf(h.config.Host.ID) != nil && !r.applied[h.index] {
			next = append(next, h)
		}
	}
	if len(next) == 0 {
		return
	}
	if r.refused > 2*len(next)+3 {
		w.abandonPlan("too many hosts refuse it")
		return
	}
	h, plan := next[w.draw(80)%uint64(len(next))], *r.plan
	r.refused++ // reset if the host accepts the plan
	w.operator(h, func(ctx context.Context, p *process) {
		_, err := p.agent.ApplyRecovery(ctx, plan, "an operator")
		w.mu.Lock()
		defer w.mu.Unlock()
		w.event(h, eventFault, 80, "plan %s applied: %v", plan.ID, err)
		if err == nil && r.plan != nil && r.plan.ID == plan.ID {
			r.applied[h.index] = true
			r.refused = 0
		}
	})
}

// abandonPlan abandons the plan on every host that allows it, so that operators start over.
func (w *world) abandonPlan(why string) {
	w.event(nil, eventFault, 81, "the plan is abandoned: %s", why)
	w.recovery.plan, w.recovery.facts = nil, nil
	for _, h := range w.hosts {
		w.abandonPlanOn(h)
	}
}

func (w *world) abandonPlanOn(h *host) {
	w.operator(h, func(ctx context.Context, p *process) {
		_, err := p.agent.AbandonRecovery(ctx, "an operator")
		w.mu.Lock()
		defer w.mu.Unlock()
		w.event(h, eventFault, 82, "plan abandoned: %v", err)
	})
}
