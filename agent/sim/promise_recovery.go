// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"fmt"

	"github.com/quorumd/quorumd/agent/hoststate"
	"github.com/quorumd/quorumd/agent/policy"
	"github.com/quorumd/quorumd/agent/recovery"
)

// What is checked here: agents of a cluster under recovery act only by the plan, and two clusters never serve at once.

// oneServes checks that at most one cluster has a leader whose writes are being committed.
func (p *promises) oneServes() {
	var leads []*etcd
	for _, e := range p.w.etcds {
		if e.leads() {
			leads = append(leads, e)
		}
	}
	if len(leads) > 1 {
		p.breach("P2", nil, fmt.Sprintf("two clusters serve at once: %x and %x", leads[0].clusterID,
			leads[1].clusterID))
	}
}

// lostWrites checks, when a recovered cluster begins to serve, that the old one has written nothing since the copy was
// made.
func (p *promises) lostWrites(e *etcd) {
	if e.from.advance(); e.from.last() > e.based {
		p.breach("P3", e.members[0].host, fmt.Sprintf("%d entries written after its copy was made are lost",
			e.from.last()-e.based))
	}
}

// planned checks a plan's choice of the survivor.
func (p *promises) planned(plan recovery.Plan) {
	own := plan.FactsOf(plan.Survivor).Log
	for _, f := range plan.Facts {
		l := f.Log
		if m := p.w.etcd.find(uint64(l.Member)); m == nil || m.learner {
			continue
		}
		if l.Term > own.Term || l.Term == own.Term && l.Index > own.Index {
			p.breach("P3", nil, fmt.Sprintf("%s is further than the survivor of the plan: entry %d of term %d", f.Host,
				l.Index, l.Term))
		}
	}
}

// leftBehind reports whether the cluster was recovered and this host has no data of the new one.
func (p *promises) leftBehind(h *host) bool {
	return p.w.etcd != p.w.etcds[0] && h.data.cluster != p.w.etcd.clusterID
}

// served reports whether a cluster serves, or did until just now.
func (p *promises) served(e *etcd) bool {
	return e.leads() || p.w.now()-e.ledAt < p.stale()
}

// byPlan checks a step: a recovery step needs a plan, or a recovered cluster without this host; and a host with a plan
// takes no other steps.
func (p *promises) byPlan(by *process, step policy.Step) {
	h, w := by.host, p.w
	k := h.planInForce()
	switch step.Kind {
	case policy.StepStopForRecovery, policy.StepLayAside, policy.StepEndRecovery:
		if k == nil && !p.leftBehind(h) {
			p.breach("P4", h, fmt.Sprintf("%s is begun without a plan", step.Kind))
		}
	case policy.StepCopyData, policy.StepPlaceCopy:
		if k == nil || !k.Alone {
			p.breach("P4", h, fmt.Sprintf("%s begins on a host that is not the survivor", step.Kind))
		}
	case policy.StepStartUnit, policy.StepWriteEnv: // checked by their effect
	default:
		if k != nil && !p.justPlanned(h, k) {
			p.breach("P4", h, fmt.Sprintf("%s is begun while plan %s is in force", step.Kind, k.Plan))
		}
	}
	t := w.plan.timing()
	if w.rescue.lost && !withoutLock(step.Kind) && !w.etcd.leads() && w.now()-w.etcd.ledAt > t.LockTTL+p.stale() {
		p.breach("P5", h, fmt.Sprintf("%s is begun in a cluster without a quorum", step.Kind))
	}
}

// justPlanned reports whether a plan was put in force so recently that the round before it may still be running.
func (p *promises) justPlanned(h *host, k *hoststate.Recovery) bool {
	return h.wall().Sub(k.Since).Abs() < p.stale()
}

// startByPlan checks a start of etcd by an agent that has a plan. It reports whether it has one.
func (p *promises) startByPlan(by *process) bool {
	h := by.host
	k := h.planInForce()
	switch {
	case k == nil, p.justPlanned(h, k):
		return k != nil
	case h.data.member == 0:
		p.breach("P4", h, "an etcd is started without data while a plan is in force")
	case h.data.cluster == uint64(k.Old) && k.GivenUp == "" && !p.served(h.etcd()):
		p.breach("P4", h, "an etcd is started on its old data while a plan is in force")
	}
	return true
}

// moveByPlan checks a move of data by a plan, or after one that has left this host behind. It reports whether the move
// is one of these.
func (p *promises) moveByPlan(by *process) bool {
	h := by.host
	k := h.planInForce()
	switch {
	case k == nil && !p.leftBehind(h), h.data.cluster != 0 && h.data.cluster == p.w.etcd.clusterID && k == nil:
		return false
	case k != nil && k.Alone:
		p.breach("P3", h, "the survivor moves its data aside")
	case p.w.etcd == p.w.etcds[0] || !p.served(p.w.etcd):
		p.breach("P3", h, "a host moves its data aside before the recovered cluster serves")
	}
	return true
}

// beforeCopy checks the start of a copy. An operator may have started etcd since the agent looked: etcd then has its
// database open, and the copy is refused.
func (p *promises) beforeCopy(by *process) {
	if u := by.host.unit; u.process && p.w.now()-u.since > p.stale() {
		p.breach("P3", by.host, "a copy is begun of data that an etcd has open")
	}
}

// comesUp checks any start of an etcd.
func (p *promises) comesUp(h *host) {
	if h.agent != nil && h.agent.survivor.state.Running {
		p.breach("P3", h, "an etcd starts on data that are being copied")
	}
	k := h.planInForce()
	if k != nil && h.stoppedFor == k.Plan && h.data.cluster == uint64(k.Old) && k.GivenUp == "" && !p.served(h.etcd()) {
		p.breach("P4", h, "an etcd that was stopped for a plan comes up again on its old data")
	}
}

// stopped is called when a step has ended: from then on the etcd is held back.
func (p *promises) stopped(h *host, step policy.Step) {
	if k := h.planInForce(); k != nil && (step.Kind == policy.StepStopForRecovery || step.Kind == policy.StepCopyData) {
		h.stoppedFor = k.Plan
	}
}

// beforeSwap checks that a copy may replace the data.
func (p *promises) beforeSwap(by *process, work recovery.Work) {
	k := by.host.planInForce()
	if k == nil || k.Plan != work.Plan || !k.Alone || k.GivenUp != "" || !k.Parted {
		p.breach("P4", by.host, fmt.Sprintf("a copy replaces the data, and the plan in force is %+v", noted(k)))
	}
}

func noted(k *hoststate.Recovery) hoststate.Recovery {
	if k == nil {
		return hoststate.Recovery{}
	}
	return *k
}
