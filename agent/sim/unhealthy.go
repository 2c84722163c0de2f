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

// syncs are the fsyncs that a host's etcd has counted since its start.
type syncs struct {
	of          int // the start since which they were counted
	at          time.Duration
	quick, slow float64
}

// syncsEach is how many log fsyncs an etcd makes per second: as many as a slow one manages.
const syncsEach = 5

// count adds the fsyncs since the last call. A hanging disk makes none.
func (d *disk) count() {
	u, now := d.host.unit, d.host.world.now()
	made := syncsEach * (now - d.syncs.at).Seconds()
	d.syncs.at = now
	switch {
	case !u.process:
		return
	case d.syncs.of != u.started:
		d.syncs = syncs{of: u.started, at: now}
	case d.slow():
		d.syncs.slow += made
	case d.state != diskHangs && d.state != diskFails:
		d.syncs.quick += made
	}
}

// histogram returns etcd's metric of its fsyncs.
func (d *disk) histogram() health.Histogram {
	d.count()
	return health.Histogram{
		Known: true, Bounds: []float64{0.016, 0.128, 0.256},
		Counts: []uint64{uint64(d.syncs.quick), 0, uint64(d.syncs.slow), 0},
	}
}

// unhealthyFaults returns faults in which voters' disks become slow, for long or for good, and faults in which only a
// disk's measurement is slow. A disk becomes slow for good only if no other voter is lost for good: two at a time need
// an operator.
func unhealthyFaults() []fault {
	return []fault{
		{
			name: "the disk is slow for a long time", weight: 4, low: 10 * time.Minute, high: 3 * time.Hour,
			begin: func(_ *world, h *host, _ time.Duration) func() {
				h.disk.become(diskSlow)
				return func() { h.disk.become(diskFine) }
			},
		},
		{
			name: "the disk becomes permanently slow", weight: 4, low: time.Second, high: time.Second,
			onlyCluster: true,
			begin: func(w *world, h *host, _ time.Duration) func() {
				w.slowForGood(h)
				return nil
			},
		},
		{
			name: "the disk is measured too slowly", weight: 4, low: 10 * time.Minute, high: time.Hour,
			begin: func(_ *world, h *host, _ time.Duration) func() {
				h.disk.become(probeSlow)
				return func() { h.disk.become(diskFine) }
			},
		},
	}
}

// slowForGood makes the disk of a voter slow for good.
func (w *world) slowForGood(h *host) {
	m := w.etcd.on(h)
	spares := w.plan.Hosts - w.plan.Voters - w.lostForGood()
	if m == nil || m.learner || h.gone || h.disk.chronic || w.lost() != nil || spares <= 0 {
		return
	}
	w.counts.SlowForGood++
	h.disk.chronic = true
	h.disk.become(diskSlow)
}

// lost returns a member whose host is dead or whose disk is slow for good, or nil.
func (w *world) lost() *member {
	i := slices.IndexFunc(w.etcd.members, func(m *member) bool { return m.host.gone || m.host.disk.chronic })
	if i < 0 {
		return nil
	}
	return w.etcd.members[i]
}

// lostForGood returns the number of hosts that are dead, or whose disk is slow, for good.
func (w *world) lostForGood() (n int) {
	for _, h := range w.hosts {
		if h.gone || h.disk.chronic {
			n++
		}
	}
	return n
}

// repairUnhealthyByHand does what only an operator can do about unhealthy voters. It replaces a disk if quorumd has
// made as many replacements as it may, removes a surplus voter if all are healthy, and releases the operation of a host
// that is not back.
func (w *world) repairUnhealthyByHand() {
	if !w.healed || w.plan.Unhealthy == 0 {
		return
	}
	for _, h := range w.hosts {
		if m := w.etcd.on(h); h.disk.chronic && m != nil && !m.learner && w.repairsSpent() {
			h.disk.chronic = false
			h.disk.become(diskFine)
		}
	}
	w.releaseUnhealthy()
	voters := w.etcd.voters()
	surplus := len(voters) == w.plan.Voters+1 && w.promises.currentOp() == nil
	ill := slices.ContainsFunc(voters, func(m *member) bool {
		return m.downAt != 0 || m.host.disk.state != diskFine || !w.promises.tells(m.host, health.OK)
	})
	if surplus && !ill && w.now()-w.promises.opSince > byHandAfter && w.now()-w.etcd.changed > byHandAfter {
		w.removeMember(voters[0].host)
	}
}

// byHandAfter is how long operators wait before they remove a surplus voter or release the operation of a host that is
// not back.
const byHandAfter = 20 * time.Minute

// releaseUnhealthy releases the operation of a host that was taken down and whose disk is slow for good. Such a host
// never comes back and blocks all others until an operator acts.
func (w *world) releaseUnhealthy() {
	op := w.promises.currentOp()
	if op == nil || op.Kind != policy.KindCycle || op.Phase != string(policy.PhaseBack) ||
		w.now()-w.promises.opSince <= byHandAfter {
		return
	}
	i := w.hostByID(op.Host)
	if i < 0 || !w.hosts[i].disk.chronic {
		return
	}
	on := slices.IndexFunc(w.hosts, func(h *host) bool { return h != w.hosts[i] && h.powered && h.agent != nil })
	if on >= 0 {
		w.operator(w.hosts[on], func(ctx context.Context, p *process) {
			_ = p.agent.ReleaseOp(ctx, control.ReleaseRequest{Reason: "its disk is slow for good"}, "an operator")
		})
	}
}

// noteHealth records since when a host's own health state has been harmful to the cluster.
func (p *promises) noteHealth(h *host, state health.State) {
	switch since, ill := p.unhealthy[h]; {
	case state != health.Slow && state != health.Stalled && state != health.Failed:
		delete(p.unhealthy, h)
	case !ill:
		p.unhealthy[h] = unhealthyPeriod{p.w.now(), state}
	default:
		p.unhealthy[h] = unhealthyPeriod{since.since, max(since.worst, state)}
	}
}

// unhealthyPeriod is what a host has reported about itself without a break.
type unhealthyPeriod struct {
	since time.Duration
	worst health.State
}

// witnessed is how long etcd's counters may show a disk as slow after it has recovered.
const witnessed = 6 * time.Minute

// notUnhealthy returns why a voter must not be replaced as unhealthy, or "". By its own health state it must have been
// slow for the grace period, have hung for a minute, or have failed; and its disk must have been at fault.
func (p *promises) notUnhealthy(m *member) string {
	w, d := p.w, m.host.disk
	said, ill := p.unhealthy[m.host]
	switch since := w.now() - said.since + p.stale(); {
	case !ill:
		return "its own health state is healthy"
	case said.worst == health.Slow && since < w.plan.Unhealthy, since < time.Minute && said.worst == health.Stalled:
		return fmt.Sprintf("which has been unhealthy for %s of %s", w.now()-said.since, w.plan.Unhealthy)
	case d.slowSince == 0 && w.now()-d.slowUntil > witnessed+p.stale():
		return "only its own health state reports it as unhealthy"
	}
	return ""
}

// replacesUnhealthy checks that a host may vote in place of a voter that is still a member.
func (p *promises) replacesUnhealthy(by *process, op *record.Op) {
	who := p.w.etcd.find(uint64(op.Replaces))
	if who == nil || who.learner || p.justIntruded() {
		return
	}
	p.replaces[by.host] = who.id
	if why := p.notUnhealthy(who); why != "" {
		p.breach("P2", by.host, "it votes in place of "+who.host.name+": "+why)
	}
}

// completes checks that a voter may have another one removed: there is one too many, and that one is dead or unhealthy,
// or was unhealthy when this host began to vote in its place by the same operation.
func (p *promises) completes(by *process, op *record.Op, m *member) {
	voters, plan := len(p.w.etcd.voters()), p.w.plan
	if plan.Unhealthy == 0 && plan.Dead == 0 || voters%2 != 0 || voters <= plan.Voters {
		p.breach("P2", by.host, "a voter replaces another one")
		return
	}
	why := "unhealthy voters stay"
	if plan.Unhealthy > 0 {
		why = p.notUnhealthy(m)
	}
	if why == "" || op.Target != "" && p.replaces[by.host] == m.id || plan.Dead > 0 && p.notDead(m) == "" {
		return
	}
	p.breach("P2", by.host, m.host.name+" is removed: "+why+"; "+p.notDead(m))
}
