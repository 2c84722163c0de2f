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

// deaths returns faults in which hosts lose power for good. Enough hosts always remain. A voter only dies if no other
// host that is dead for good is still a member: two at a time need an operator.
func deaths() []fault {
	return []fault{{
		name: "the host dies for good", weight: 8, low: time.Second, high: time.Second, onlyCluster: true,
		begin: func(w *world, h *host, _ time.Duration) func() {
			w.dies(h)
			return nil
		},
	}}
}

func (w *world) dies(h *host) {
	m, op := w.etcd.on(h), w.promises.currentOp()
	voters, left := len(w.etcd.voters()), w.plan.Hosts-w.lostForGood()-1
	switch {
	case w.rescue.lost: // that would be a second disaster
		return
	case m != nil && voters-1 < voters/2+1: // operators have removed so many that the others are no quorum
		return
	case !h.powered || h.asked || h.disk.chronic || w.lost() != nil || left < w.plan.Voters:
		return
	case m != nil && m.learner && left < w.plan.Voters+w.plan.Standbys: // it is removed once another standby is ready
		return
	case op != nil && op.Host == h.config.Host.ID: // a host lost in maintenance needs an operator
		return
	}
	w.counts.Died++
	h.losePower()
	h.gone = true
}

// byHand does what only an operator can do about a host that is dead for good. It ends the operation that the dead host
// would have to end, and restores power if quorumd has made as many replacements as it may.
func (w *world) byHand() {
	gone := slices.IndexFunc(w.hosts, func(h *host) bool { return h.gone })
	if gone < 0 || !w.healed {
		return
	}
	helper := w.hosts[slices.IndexFunc(w.hosts, func(h *host) bool { return !h.gone })]
	if r := w.etcd.store.Get(w.keys.Rollout()); r != nil {
		if v, err := record.Decode[record.Rollout](r.Value); err != nil || v.State == record.RolloutRunning {
			w.setRollout(helper, control.RolloutAborted)
		}
	}
	if op := w.promises.currentOp(); op != nil && (op.Kind == policy.KindCycle || op.Kind == policy.KindRemove) {
		if i := w.hostByID(op.Host); i >= 0 && w.hosts[i].gone {
			w.operator(helper, func(ctx context.Context, p *process) {
				_ = p.agent.ReleaseOp(ctx, control.ReleaseRequest{Reason: "its host is dead"}, "an operator")
			})
		}
	}
	for _, h := range w.hosts {
		if m := w.etcd.on(h); h.gone && m != nil && !m.learner && w.repairsSpent() {
			h.gone = false
			h.powerUp()
		}
	}
}

// repairsSpent reports whether the agents have used up their replacements.
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

// reachedBy updates since when a serving voter has reached the ports of a member. It is called after every change.
func (m *member) reachedBy(w *world) {
	reached := m.host.powered && m.host.unit.process && m.host.data.is(m) &&
		slices.ContainsFunc(m.etcd.members, func(v *member) bool {
			return v != m && !v.learner && v.downAt == 0 && w.linked(v.host, m.host)
		})
	switch {
	case reached && m.reachedAt == 0:
		m.reachedAt = w.now()
	case !reached && m.reachedAt != 0:
		if w.now()-m.reachedAt > w.promises.stale() { // a shorter time may go unnoticed
			m.reachedTo = w.now()
		}
		m.reachedAt = 0
	}
}

// repairsLeft returns how many more voters may be replaced. One that is still in the member list does not count.
func (p *promises) repairsLeft() int {
	left := p.w.plan.PerDay
	for id, at := range p.repairs {
		if p.w.now()-at < 24*time.Hour && p.w.etcd.find(id) == nil {
			left--
		}
	}
	return left
}

// beforeReplacement checks the removal of a voter that its remover replaces, at the moment it is sent.
func (p *promises) beforeReplacement(by *process, id uint64) {
	w, m, op := p.w, p.w.etcd.find(id), p.currentOp()
	if m == nil || m.learner || !op.Of(by.host.config.Host.ID) || op.Kind != policy.KindReplace || p.justIntruded() ||
		w.now() < time.Duration(by.frozen.Load()) {
		return
	}
	if _, again := p.repairs[id]; !again {
		if p.repairsLeft() == 0 {
			p.breach("P7", by.host, fmt.Sprintf("%d voters have been replaced, and now another one", w.plan.PerDay))
		}
		p.repairs[id] = w.now()
		p.out[m.host] = ejected{p.out[m.host].times + 1, w.now()}
		w.counts.Replaced++
	}
	votes := w.etcd.on(by.host)
	switch {
	case votes != nil && !votes.learner:
		p.completes(by, op, m)
		p.commonCause(by, m)
		return
	case w.plan.Unhealthy > 0 && p.notUnhealthy(m) == "": // it hangs, or is too slow to answer
	default:
		if why := p.notDead(m); why != "" {
			p.breach("P2", by.host, why)
		}
	}
	p.fitness(by)
	p.commonCause(by, m)
}

// notDead returns why a voter must not be replaced as dead, or "".
func (p *promises) notDead(m *member) string {
	w := p.w
	switch {
	case m.reachedAt != 0 && w.now()-m.reachedAt > p.stale():
		return "a voter is replaced that another voter reaches: " + m.host.name
	case w.now()-m.reachedTo < w.plan.Dead:
		return fmt.Sprintf("%s is replaced, which has been dead for %s of %s", m.host.name, w.now()-m.reachedTo,
			w.plan.Dead)
	}
	return ""
}

// commonCause checks that a voter is not replaced while another one is down, or is unhealthy and has reported that.
func (p *promises) commonCause(by *process, m *member) {
	w, domain := p.w, m.host.config.Host.Domain
	var also []*member
	shared := false
	for _, o := range w.etcd.voters() {
		d := o.host.disk
		unhealthy := d.slow() && w.now()-d.since > slowForSure && p.tells(o.host, health.Slow)
		switch down := o.downAt != 0 && w.now()-o.downAt > p.stale(); {
		case o == m:
		case down || unhealthy:
			also = append(also, o)
		default:
			shared = shared || o.host.config.Host.Domain == domain
		}
	}
	for _, o := range also {
		if shared || o.host.config.Host.Domain != domain {
			p.breach("P7", by.host, fmt.Sprintf("%s is replaced while %s is not well either", m.host.name, o.host.name))
			return
		}
	}
}

// slowLeaderStays checks that a leader with a slow disk, which it reports, does not keep leading while another voter is
// healthy.
func (p *promises) slowLeaderStays(by *process, v health.Assessment) {
	w := p.w
	m, d := w.etcd.leader, by.host.disk
	slow := m != nil && m.host == by.host && d.slow() && v.State == health.Slow && p.currentOp() == nil &&
		!by.host.disturbed() && w.now()-d.since > slowForSure && p.betterLeader(m)
	if !slow {
		delete(p.leads, by)
		return
	}
	if since, counted := p.leads[by]; !counted {
		p.leads[by] = w.now()
	} else if w.now()-since > slowLeader {
		p.breach("P2", by.host, "a leader whose disk is slow leads on for "+(w.now()-since).Round(time.Second).String())
		p.leads[by] = w.now()
	}
}

// slowLeader is how long a slow leader may lead while another voter is known to be healthy: three times the usual wait
// between two attempts.
const slowLeader = 3 * time.Minute

// disturbed reports whether a host's requests to etcd may be lost.
func (h *host) disturbed() bool {
	return h.late > 0 || h.lossy > 0 || h.mute || h.slow.Load() > 0 || h.asked || h.trap != trap{}
}

// betterLeader reports whether a voter has been healthy for so long that all hosts know it.
func (p *promises) betterLeader(leader *member) bool {
	w := p.w
	return slices.ContainsFunc(w.etcd.voters(), func(m *member) bool {
		told, ok := p.hostRecord(m.host.config.Host.ID)
		h := m.host
		return ok && m != leader && m.downAt == 0 && h.disk.state == diskFine && w.now()-h.disk.since > slowForSure &&
			told.Health == health.OK.String() && told.Turn.IsZero() && told.Wants == "" && told.Waiting == "" &&
			h.agent != nil && w.now() >= time.Duration(h.agent.frozen.Load()) && !h.disturbed() &&
			w.linked(h, leader.host) && w.now()-m.upSince > slowForSure
	})
}
