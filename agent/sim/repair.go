// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/quorumd/quorumd/agent/control"
	"github.com/quorumd/quorumd/agent/policy"
	"github.com/quorumd/quorumd/agent/record"
	"github.com/quorumd/quorumd/health"
)

// deathFaults returns the fault in which a host loses power for good. Enough hosts for the target number of voters
// always remain. No host dies while another member is lost for good, because two such members at a time need an
// operator.
func deathFaults() []fault {
	return []fault{{
		name: "the host dies for good", weight: 8, low: time.Second, high: time.Second, needsCluster: true,
		begin: func(w *world, h *host, _ time.Duration) func() {
			w.killForGood(h)
			return nil
		},
	}}
}

// killForGood cuts a host's power for good, unless the cluster could not recover from that without an operator.
func (w *world) killForGood(h *host) {
	m, op := w.etcd.memberOn(h), w.promises.currentOp()
	voters, left := len(w.etcd.voters()), w.plan.Hosts-w.countLostForGood()-1
	switch {
	case w.recovery.lost: // quorum is already lost, and a second disaster is not simulated
		return
	case m != nil && voters-1 < voters/2+1: // there are so few voters that the rest would lack quorum
		return
	case !h.powered || h.maintenanceRequested || h.disk.chronic || w.memberLostForGood() != nil || left < w.plan.Voters:
		return
	case m != nil && m.learner && left < w.plan.Voters+w.plan.Standbys:
		return // agents remove a lost standby only if another host is ready to become a standby
	case op != nil && op.Host == h.config.Host.ID: // a host that is lost during its own operation may need an operator
		return
	}
	w.counts.Died++
	h.losePower()
	h.dead = true
}

// repairDeadByHand does the work that only an operator can do about dead hosts: it aborts the rollout, releases the
// operation of a dead host, and restores the power of a voter if the agents have reached the limit of replacements.
func (w *world) repairDeadByHand() {
	gone := slices.IndexFunc(w.hosts, func(h *host) bool { return h.dead })
	if gone < 0 || !w.healed {
		return
	}
	helper := w.hosts[slices.IndexFunc(w.hosts, func(h *host) bool { return !h.dead })]
	if r := w.etcd.store.Get(w.keys.Rollout()); r != nil {
		v, err := record.Decode[record.Rollout](r.Value)
		if err != nil || v.State == record.RolloutRunning && w.endsOnlyByHand(v) {
			w.setRollout(helper, record.RolloutAborted)
		}
	}
	if op := w.promises.currentOp(); op != nil && (op.Kind == policy.KindCycle || op.Kind == policy.KindRemove) {
		if i := w.hostByID(op.Host); i >= 0 && w.hosts[i].dead {
			w.operator(helper, func(ctx context.Context, p *process) {
				_ = p.agent.ReleaseOp(ctx, control.ReleaseRequest{Reason: "its host is dead"}, "an operator")
			})
		}
	}
	for _, h := range w.hosts {
		if m := w.etcd.memberOn(h); h.dead && m != nil && !m.learner && w.repairsSpent() {
			h.dead = false
			h.powerUp()
		}
	}
}

// endsOnlyByHand reports whether operators have to abort a rollout because hosts are dead. A readdress that operators
// request after the faults have ended leaves out dead hosts, and ends by itself.
func (w *world) endsOnlyByHand(r record.Rollout) bool {
	return r.Work != string(policy.WorkReaddress) || slices.ContainsFunc(r.Hosts, func(h record.RolloutHost) bool {
		i := w.hostByID(h.ID)
		return i >= 0 && w.hosts[i].dead
	})
}

// repairsSpent reports whether the agents have reached the limit of replacements.
func (w *world) repairsSpent() bool {
	kv := w.etcd.store.Get(w.keys.Repairs())
	if kv == nil {
		return false
	}
	all, err := record.Decode[record.Repairs](kv.Value)
	return err == nil && all.Today(w.began.Add(w.now()), func(id record.MemberID) bool {
		return w.etcd.find(uint64(id)) != nil
	}) >= w.plan.PerDay
}

func (w *world) hostByID(id string) int {
	return slices.IndexFunc(w.hosts, func(h *host) bool { return h.config.Host.ID == id })
}

// updateReached updates the times at which another serving voter has reached the member's ports.
func (m *member) updateReached(w *world) {
	reached := m.host.powered && m.host.unit.running && m.host.data.belongsTo(m) &&
		slices.ContainsFunc(m.etcd.members, func(v *member) bool {
			return v != m && !v.learner && v.downAt == 0 && w.linked(v.host, m.host)
		})
	switch {
	case reached && m.reachedAt == 0:
		m.reachedAt = w.now()
	case !reached && m.reachedAt != 0:
		if w.now()-m.reachedAt > w.promises.staleness() { // a host may not have observed a shorter contact
			m.reachedTo = w.now()
		}
		m.reachedAt = 0
	}
}

// repairsLeft returns how many more voters may be replaced now, given the replacements within the last 24 hours. A
// replacement counts as soon as the voter is removed.
func (p *promises) repairsLeft() int {
	left := p.w.plan.PerDay
	for id, at := range p.repairedAt {
		if p.w.now()-at < 24*time.Hour && p.w.etcd.find(id) == nil {
			left--
		}
	}
	return left
}

// beforeReplacement checks the removal of a voter by its replacement when the removal is sent.
func (p *promises) beforeReplacement(by *process, id uint64) {
	w, m, op := p.w, p.w.etcd.find(id), p.currentOp()
	if m == nil || m.learner || !op.Of(by.host.config.Host.ID) || op.Kind != policy.KindReplace || p.justIntruded() ||
		w.now() < time.Duration(by.frozen.Load()) {
		return
	}
	if _, again := p.repairedAt[id]; !again {
		if p.repairsLeft() == 0 {
			p.breach("P7", by.host, fmt.Sprintf("%d voters have been replaced, and now another one", w.plan.PerDay))
		}
		p.repairedAt[id] = w.now()
		p.ejections[m.host] = ejection{p.ejections[m.host].times + 1, w.now()}
		w.counts.Replaced++
	}
	votes := w.etcd.memberOn(by.host)
	switch {
	case votes != nil && !votes.learner:
		p.checkCompletion(by, op, m)
		p.checkCommonCause(by, m)
		return
	// the voter is unhealthy: for example, its disk hangs or is too slow for the voter to answer
	case w.plan.Unhealthy > 0 && p.whyNotUnhealthy(m) == "":
	default:
		if why := p.whyNotDead(m); why != "" {
			p.breach("P2", by.host, why)
		}
	}
	p.checkFitness(by)
	p.checkCommonCause(by, m)
}

// whyNotDead returns why a voter must not be replaced as dead, or "".
func (p *promises) whyNotDead(m *member) string {
	w := p.w
	switch {
	case m.reachedAt != 0 && w.now()-m.reachedAt > p.staleness():
		return m.host.name + " is replaced although another voter reaches it"
	case w.now()-m.reachedTo < w.plan.Dead:
		return fmt.Sprintf("%s is replaced after being dead for only %s of %s", m.host.name, w.now()-m.reachedTo,
			w.plan.Dead)
	}
	return ""
}

// checkCommonCause checks that a voter is not replaced while another one is down, or has published that it is
// unhealthy, unless all of them are in one failure domain that has no other voter.
func (p *promises) checkCommonCause(by *process, m *member) {
	w, domain := p.w, m.host.config.Host.Domain
	var also []*member
	shared := false
	for _, o := range w.etcd.voters() {
		d := o.host.disk
		unhealthy := d.slow() && w.now()-d.since > slowForSure && p.publishes(o.host, health.Slow)
		switch down := o.downAt != 0 && w.now()-o.downAt > p.staleness(); {
		case o == m:
		case down || unhealthy:
			also = append(also, o)
		default:
			shared = shared || o.host.config.Host.Domain == domain
		}
	}
	for _, o := range also {
		if shared || o.host.config.Host.Domain != domain {
			p.breach("P7", by.host, fmt.Sprintf("%s is replaced while %s is down or unhealthy too", m.host.name,
				o.host.name))
			return
		}
	}
}

// checkSlowLeader checks that a leader whose agent has observed that its disk is slow does not keep leading while
// another voter is healthy, no operation is in flight, the cluster is not paused, and no fault disturbs the leader's
// host.
func (p *promises) checkSlowLeader(by *process, v health.Assessment) {
	w := p.w
	m, d := w.etcd.leader, by.host.disk
	paused := w.etcd.store.Get(w.keys.Pause()) != nil
	slow := m != nil && m.host == by.host && d.slow() && v.State == health.Slow && p.currentOp() == nil && !paused &&
		!by.host.isDisturbed() && w.now()-d.since > slowForSure && p.betterLeader(m)
	if !slow {
		delete(p.slowLeaderSince, by)
		return
	}
	if since, counted := p.slowLeaderSince[by]; !counted {
		p.slowLeaderSince[by] = w.now()
	} else if w.now()-since > slowLeader {
		p.breach("P2", by.host, "a leader with a slow disk keeps leading for "+
			(w.now()-since).Round(time.Second).String())
		p.slowLeaderSince[by] = w.now()
	}
}

// slowLeader is how long a slow leader may lead while another voter is healthy. It is three times the default interval
// between two attempts to transfer leadership.
const slowLeader = 3 * time.Minute

// isDisturbed reports whether faults affect a host's requests, or an operator has requested maintenance.
func (h *host) isDisturbed() bool {
	return h.latePercent > 0 || h.lossPercent > 0 || h.dropsKeepalives || h.maxDelay.Load() > 0 ||
		h.maintenanceRequested || h.trap != trap{}
}

// betterLeader reports whether another voter has been healthy for so long that all hosts have observed it.
func (p *promises) betterLeader(leader *member) bool {
	w := p.w
	return slices.ContainsFunc(w.etcd.voters(), func(m *member) bool {
		published, ok := p.hostRecord(m.host.config.Host.ID)
		h := m.host
		return ok && m != leader && m.downAt == 0 && h.disk.state == diskFine && w.now()-h.disk.since > slowForSure &&
			published.Health == health.OK.String() && published.Turn.IsZero() && published.Wants == "" &&
			published.Waiting == "" &&
			h.agent != nil && w.now() >= time.Duration(h.agent.frozen.Load()) && !h.isDisturbed() &&
			w.linked(h, leader.host) && w.now()-m.upSince > slowForSure
	})
}
