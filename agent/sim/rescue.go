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

// rescueOn lets operators take the next step of the recovery. Now and then agents are killed and hosts lose power
// meanwhile.
func (w *world) rescueOn() {
	r := &w.rescue
	switch {
	case !r.lost:
		return
	case w.rescued() && w.removeEmptied():
		r.lost = false
		w.happen(nil, happenedFault, 73, "people are done with the recovery")
		return
	case w.rescued():
	case w.etcd.leads() && w.etcd.from != nil:
		w.dropOthers()
	case r.plan != nil && chance(w.draw(74), 6):
		w.giveUp("people have changed their mind")
	case r.plan != nil:
		w.applyPlan()
	case len(r.facts) > 0 && w.now()-r.asked > 20*time.Second:
		w.makePlan()
	default:
		w.askFacts()
	}
	w.upset()
	w.after(between(w.draw(75), 5*time.Second, 2*time.Minute), laneFaults, w.rescueOn)
}

// rescued reports whether a cluster serves and no host has a plan to carry out.
func (w *world) rescued() bool {
	for _, h := range w.hosts {
		if h.planInForce() != nil {
			return false
		}
	}
	return w.etcd.leads()
}

// dropOthers abandons all plans in force except the one by which the cluster was recovered.
func (w *world) dropOthers() {
	for _, h := range w.hosts {
		if k := h.planInForce(); k != nil && uint64(k.New) != w.etcd.clusterID {
			w.giveUpOn(h)
		}
	}
}

// removeEmptied requests the removal of a member whose data are lost: if the old quorum is back, operators have to
// remove it. It reports whether there is none.
func (w *world) removeEmptied() bool {
	i := slices.IndexFunc(w.etcd.members, func(m *member) bool { return m.name != "" && !m.host.data.is(m) })
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
		w.happen(h, happenedFault, 83, "is asked to remove %s, whose disk is new: %v", req.Member, err)
	})
	return false
}

// planInForce returns the plan that a host's agent has recorded, or nil.
func (h *host) planInForce() *hoststate.Recovery {
	text, err := h.files.read(stateDir + "/recovery.json")
	if err != nil {
		return nil
	}
	var noted hoststate.Recoveries
	if err := json.Unmarshal(text, &noted); err != nil {
		h.world.promises.breach("P8", h, "the recorded plan cannot be read: "+err.Error())
	}
	return noted.Recovery
}

// upset kills an agent, or cuts a host's power.
func (w *world) upset() {
	h := w.hosts[w.draw(76)%uint64(len(w.hosts))]
	switch drawn := w.draw(77); {
	case w.healed || h.gone || !h.powered:
	case chance(drawn, 30):
		h.kill()
		w.after(between(drawn, time.Second, 20*time.Second), laneFaults, h.agentBack)
	case chance(drawn, 40):
		h.losePower()
		w.after(between(drawn, time.Second, time.Minute), laneFaults, h.powerUp)
	}
}

func (w *world) askFacts() {
	r := &w.rescue
	facts := map[int]recovery.Facts{} // later answers are of no use
	r.asked, r.facts = w.now(), facts
	for _, h := range w.hosts {
		w.operator(h, func(ctx context.Context, p *process) {
			f, err := p.agent.RecoveryFacts(ctx)
			w.mu.Lock()
			defer w.mu.Unlock()
			w.happen(h, happenedFault, 76, "tells its facts: entry %d of term %d, quorum %v: %v", f.Log.Index,
				f.Log.Term, f.Quorum, err)
			if err == nil {
				facts[h.index] = f
			}
		})
	}
}

// makePlan makes a plan from the facts at hand. Hosts without facts are declared gone.
func (w *world) makePlan() {
	r := &w.rescue
	var all []recovery.Facts
	for _, h := range w.hosts {
		f, ok := r.facts[h.index]
		if ok {
			all = append(all, f)
		} else if h.powered && h.data.member != 0 { // it can be reached, and may have the most data
			r.facts = nil
			return
		}
	}
	wish := recovery.Choice{
		Cluster: "sim", At: w.began.Add(w.now()), ID: planID(w.draw(78)), New: record.MemberID(w.draw(79) | 1),
	}
	for _, m := range recovery.Missing(all) {
		wish.Gone = append(wish.Gone, cmp.Or(m.Name, m.ID.String()))
	}
	for _, h := range w.hosts {
		if h.gone {
			wish.KeptOff = append(wish.KeptOff, h.name)
		}
	}
	plan, err := recovery.NewPlan(all, wish)
	r.facts = nil
	if err != nil {
		w.happen(nil, happenedFault, 77, "%v", err)
		for _, h := range w.hosts { // what is still in force was to be abandoned
			if h.planInForce() != nil {
				w.giveUpOn(h)
			}
		}
		return
	}
	r.plan, r.applied, r.refused = &plan, map[int]bool{}, 0
	r.plans++
	w.happen(nil, happenedFault, 78, "plan %s: survivor %s continues as %x; gone: %v", plan.ID,
		plan.FactsOf(plan.Survivor).Host, uint64(plan.New), plan.Gone)
	w.promises.planned(plan)
}

// planID returns a number as letters.
func planID(drawn uint64) string {
	id := make([]byte, 12)
	for i := range id {
		id[i] = 'a' + byte(drawn%26)
		drawn /= 26
	}
	return string(id)
}

// applyPlan has the next host apply the plan, in any order. A plan that is refused repeatedly is abandoned.
func (w *world) applyPlan() {
	r := &w.rescue
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
		w.giveUp("too many refuse the plan")
		return
	}
	h, plan := next[w.draw(80)%uint64(len(next))], *r.plan
	r.refused++ // unless the answer says that it was not
	w.operator(h, func(ctx context.Context, p *process) {
		_, err := p.agent.ApplyRecovery(ctx, plan, "an operator")
		w.mu.Lock()
		defer w.mu.Unlock()
		w.happen(h, happenedFault, 80, "is to obey plan %s: %v", plan.ID, err)
		if err == nil && r.plan != nil && r.plan.ID == plan.ID {
			r.applied[h.index] = true
			r.refused = 0
		}
	})
}

// giveUp abandons the plan on every host where that is possible, to start over.
func (w *world) giveUp(why string) {
	w.happen(nil, happenedFault, 81, "the plan is given up: %s", why)
	w.rescue.plan, w.rescue.facts = nil, nil
	for _, h := range w.hosts {
		w.giveUpOn(h)
	}
}

func (w *world) giveUpOn(h *host) {
	w.operator(h, func(ctx context.Context, p *process) {
		_, err := p.agent.AbandonRecovery(ctx, "an operator")
		w.mu.Lock()
		defer w.mu.Unlock()
		w.happen(h, happenedFault, 82, "is to give its plan up: %v", err)
	})
}
