// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"fmt"

	"github.com/quorumd/quorumd/agent/hoststate"
	"github.com/quorumd/quorumd/agent/policy"
	"github.com/quorumd/quorumd/agent/recovery"
)

// What is judged here: in a cluster under recovery nobody acts but by the plan, and two clusters never serve at once.

// oneServes judges that no two clusters have a leader whose writes are committed.
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

// lostWrites judges, when a recovered cluster begins to serve, that the old one has written nothing since the copy was
// made that it serves.
func (p *promises) lostWrites(e *etcd) {
	if e.from.advance(); e.from.last() > e.based {
		p.breach("P3", e.members[0].host, fmt.Sprintf("%d entries are lost that were written after its copy was made",
			e.from.last()-e.based))
	}
}

// planned judges whom a plan has chosen.
func (p *promises) planned(plan recovery.Plan) {
	own := plan.Of(plan.Survivor).Log
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

// leftBehind reports whether a cluster goes on that this host has no data of.
func (p *promises) leftBehind(h *host) bool {
	return p.w.etcd != p.w.etcds[0] && h.data.cluster != p.w.etcd.clusterID
}

// served reports whether a cluster serves, or has until just now.
func (p *promises) served(e *etcd) bool {
	return e.leads() || p.w.now()-e.ledAt < p.stale()
}

// byPlan judges a step: those of a recovery need a plan, or a cluster that goes on without this host; and a host with a
// plan takes no others.
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
	case policy.StepStartUnit, policy.StepWriteEnv: // which are judged by what they do
	default:
		if k != nil && !p.justPlanned(h, k) {
			p.breach("P4", h, fmt.Sprintf("%s is begun while plan %s is in force", step.Kind, k.Plan))
		}
	}
	t := w.plan.timing()
	if w.rescue.lost && !withoutLock(step.Kind) && !w.etcd.leads() && w.now()-w.etcd.ledAt > t.LockTTL+p.stale() {
		p.breach("P5", h, fmt.Sprintf("%s is begun in a cluster that has lost its majority", step.Kind))
	}
}

// justPlanned reports whether a plan was put in force so short a time ago that the round before it may still end.
func (p *promises) justPlanned(h *host, k *hoststate.Recovery) bool {
	return h.wall().Sub(k.Since).Abs() < p.stale()
}

// startByPlan judges that an agent starts its etcd while it has a plan. It tells whether it has.
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

// moveByPlan judges that data are moved aside by a plan, or after one that has left this host behind. It tells whether
// that is so.
func (p *promises) moveByPlan(by *process) bool {
	h := by.host
	k := h.planInForce()
	switch {
	case k == nil && !p.leftBehind(h), h.data.cluster != 0 && h.data.cluster == p.w.etcd.clusterID && k == nil:
		return false
	case k != nil && k.Alone:
		p.breach("P3", h, "the survivor lays its data aside")
	case p.w.etcd == p.w.etcds[0] || !p.served(p.w.etcd):
		p.breach("P3", h, "a host parts with its data before the recovered cluster serves")
	}
	return true
}

// beforeCopy judges that a copy of the data is begun. Somebody may have started the etcd since the agent looked: it has
// its database open, and the copy is refused.
func (p *promises) beforeCopy(by *process) {
	if u := by.host.unit; u.process && p.w.now()-u.since > p.stale() {
		p.breach("P3", by.host, "a copy is begun of data that an etcd has open")
	}
}

// comesUp judges that an etcd starts, whoever has started it.
func (p *promises) comesUp(h *host) {
	if h.agent != nil && h.agent.survivor.state.Runs {
		p.breach("P3", h, "an etcd starts on data that are being copied")
	}
	k := h.planInForce()
	if k != nil && h.stoppedFor == k.Plan && h.data.cluster == uint64(k.Old) && k.GivenUp == "" && !p.served(h.etcd()) {
		p.breach("P4", h, "an etcd that was stopped for a plan comes up again on its old data")
	}
}

// stopped is told of a step that has ended: from then on an etcd is held back.
func (p *promises) stopped(h *host, step policy.Step) {
	if k := h.planInForce(); k != nil && (step.Kind == policy.StepStopForRecovery || step.Kind == policy.StepCopyData) {
		h.stoppedFor = k.Plan
	}
}

// beforeSwap judges that a copy takes the place of the data.
func (p *promises) beforeSwap(by *process, work recovery.Work) {
	k := by.host.planInForce()
	if k == nil || k.Plan != work.Plan || !k.Alone || k.GivenUp != "" || !k.Parted {
		p.breach("P4", by.host, fmt.Sprintf("a copy takes the place of the data, and what stands is %+v", noted(k)))
	}
}

func noted(k *hoststate.Recovery) hoststate.Recovery {
	if k == nil {
		return hoststate.Recovery{}
	}
	return *k
}
