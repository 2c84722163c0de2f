// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"fmt"

	"github.com/quorumd/quorumd/agent/hoststate"
	"github.com/quorumd/quorumd/agent/policy"
	"github.com/quorumd/quorumd/agent/recovery"
)

// These checks ensure that, during a recovery, agents act only according to the plan, and that two clusters never serve
// at once.

// checkOneServes checks that at most one cluster has a leader that commits writes.
func (p *promises) checkOneServes() {
	var leads []*etcd
	for _, e := range p.w.etcds {
		if e.hasLeader() {
			leads = append(leads, e)
		}
	}
	if len(leads) > 1 {
		p.breach("P2", nil, fmt.Sprintf("two clusters serve at once: %x and %x", leads[0].clusterID,
			leads[1].clusterID))
	}
}

// checkLostWrites checks, when a recovered cluster begins to serve, that the old cluster has committed nothing since
// the copy was made.
func (p *promises) checkLostWrites(e *etcd) {
	if e.predecessor.advance(); e.predecessor.lastIndex() > e.copiedUpTo {
		p.breach("P3", e.members[0].host, fmt.Sprintf("%d entries committed after the copy was made are lost",
			e.predecessor.lastIndex()-e.copiedUpTo))
	}
}

// checkPlan checks that no voter has a longer log than the plan's survivor.
func (p *promises) checkPlan(plan recovery.Plan) {
	own := plan.FactsOf(plan.Survivor).Log
	for _, f := range plan.Facts {
		l := f.Log
		if m := p.w.etcd.find(uint64(l.Member)); m == nil || m.learner {
			continue
		}
		if l.Term > own.Term || l.Term == own.Term && l.Index > own.Index {
			p.breach("P3", nil, fmt.Sprintf("%s has a longer log than the plan's survivor: entry %d of term %d", f.Host,
				l.Index, l.Term))
		}
	}
}

// leftBehind reports whether the cluster was recovered and this host has no data of the recovered cluster.
func (p *promises) leftBehind(h *host) bool {
	return p.w.etcd != p.w.etcds[0] && h.data.cluster != p.w.etcd.clusterID
}

// servedRecently reports whether a cluster serves, or did until just now.
func (p *promises) servedRecently(e *etcd) bool {
	return e.hasLeader() || p.w.now()-e.lastLedAt < p.staleness()
}

// checkStepByPlan checks that a recovery step belongs to a plan or follows a recovery without this host, and that a
// host with a plan begins no other steps, except those that start etcd. It also checks that, once quorum is lost, no
// step begins that needs the lock.
func (p *promises) checkStepByPlan(by *process, step policy.Step) {
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
	case policy.StepStartUnit, policy.StepWriteEnv: // checkStartByPlan checks the start
	default:
		if k != nil && !p.justPlanned(h, k) {
			p.breach("P4", h, fmt.Sprintf("%s is begun while plan %s is in force", step.Kind, k.Plan))
		}
	}
	t := w.plan.timing()
	if w.recovery.lost && !withoutLock(step.Kind) && !w.etcd.hasLeader() &&
		w.now()-w.etcd.lastLedAt > t.LockTTL+p.staleness() {
		p.breach("P5", h, fmt.Sprintf("%s is begun in a cluster without a quorum", step.Kind))
	}
}

// justPlanned reports whether a plan came into force so recently that a round that began earlier may still be running.
func (p *promises) justPlanned(h *host, k *hoststate.Recovery) bool {
	return h.wall().Sub(k.Since).Abs() < p.staleness()
}

// checkStartByPlan checks a start of etcd by an agent that has a plan. It reports whether the agent has one.
func (p *promises) checkStartByPlan(by *process) bool {
	h := by.host
	k := h.planInForce()
	switch {
	case k == nil, p.justPlanned(h, k):
		return k != nil
	case h.data.member == 0:
		p.breach("P4", h, "an etcd is started without data while a plan is in force")
	case h.data.cluster == uint64(k.Old) && k.GivenUp == "" && !p.servedRecently(h.etcd()):
		p.breach("P4", h, "an etcd is started on its old data while a plan is in force")
	}
	return true
}

// checkMoveByPlan checks a move of data that a plan, or a recovery without this host, requires. It returns false for
// any other move.
func (p *promises) checkMoveByPlan(by *process) bool {
	h := by.host
	k := h.planInForce()
	switch {
	case k == nil && !p.leftBehind(h), h.data.cluster != 0 && h.data.cluster == p.w.etcd.clusterID && k == nil:
		return false
	case k != nil && k.Alone:
		p.breach("P3", h, "the survivor moves its data aside")
	case p.w.etcd == p.w.etcds[0] || !p.servedRecently(p.w.etcd):
		p.breach("P3", h, "a host moves its data aside before the recovered cluster serves")
	}
	return true
}

// beforeCopy checks that etcd does not run when a copy begins. If an operator has started etcd since the agent's last
// round, the copy fails because etcd has its database open.
func (p *promises) beforeCopy(by *process) {
	if u := by.host.unit; u.running && p.w.now()-u.since > p.staleness() {
		p.breach("P3", by.host, "a copy of data that an etcd has open is begun")
	}
}

// checkStart checks a start of an etcd by any caller.
func (p *promises) checkStart(h *host) {
	if h.agent != nil && h.agent.survivor.state.Running {
		p.breach("P3", h, "an etcd is started on data that is being copied")
	}
	k := h.planInForce()
	if k != nil && h.stoppedForPlan == k.Plan && h.data.cluster == uint64(k.Old) && k.GivenUp == "" &&
		!p.servedRecently(h.etcd()) {
		p.breach("P4", h, "an etcd that was stopped for a plan is started again on its old data")
	}
}

// noteStop records, at the end of a step, that etcd must not start from now on because of the plan.
func (p *promises) noteStop(h *host, step policy.Step) {
	if k := h.planInForce(); k != nil && (step.Kind == policy.StepStopForRecovery || step.Kind == policy.StepCopyData) {
		h.stoppedForPlan = k.Plan
	}
}

// beforeSwap checks that a copy may replace the data.
func (p *promises) beforeSwap(by *process, work recovery.Work) {
	k := by.host.planInForce()
	if k == nil || k.Plan != work.Plan || !k.Alone || k.GivenUp != "" || !k.Parted {
		p.breach("P4", by.host, fmt.Sprintf("a copy replaces the data while the plan in force is %+v", k))
	}
}
