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

// fsyncs counts the fsyncs of a host's etcd since its start.
type fsyncs struct {
	start      int // the number of the start since which the fsyncs are counted
	at         time.Duration
	fast, slow float64
}

// fsyncsPerSecond is the number of log fsyncs of every etcd per second, which even a slow disk completes.
const fsyncsPerSecond = 5

// countFsyncs adds the fsyncs since the last call. A hanging or failing disk completes none.
func (d *disk) countFsyncs() {
	u, now := d.host.unit, d.host.world.now()
	made := fsyncsPerSecond * (now - d.fsyncs.at).Seconds()
	d.fsyncs.at = now
	switch {
	case !u.running:
		return
	case d.fsyncs.start != u.starts:
		d.fsyncs = fsyncs{start: u.starts, at: now}
	case d.slow():
		d.fsyncs.slow += made
	case d.state != diskHangs && d.state != diskFails:
		d.fsyncs.fast += made
	}
}

// histogram returns etcd's metric of fsync durations.
func (d *disk) histogram() health.Histogram {
	d.countFsyncs()
	return health.Histogram{
		Known: true, Bounds: []float64{0.016, 0.128, 0.256},
		Counts: []uint64{uint64(d.fsyncs.fast), 0, uint64(d.fsyncs.slow), 0},
	}
}

// unhealthyFaults returns faults in which a disk becomes slow, for long or for good, and faults in which only its
// measurement is slow. A voter's disk becomes slow for good only if no other member is lost for good, because two such
// members at a time need an operator.
func unhealthyFaults() []fault {
	return []fault{
		{
			name: "the disk is slow for a long time", weight: 4, low: 10 * time.Minute, high: 3 * time.Hour,
			begin: func(_ *world, h *host, _ time.Duration) func() {
				h.disk.setState(diskSlow)
				return func() { h.disk.setState(diskFine) }
			},
		},
		{
			name: "the disk becomes permanently slow", weight: 4, low: time.Second, high: time.Second,
			needsCluster: true,
			begin: func(w *world, h *host, _ time.Duration) func() {
				w.makeSlowForGood(h)
				return nil
			},
		},
		{
			name: "the disk is measured too slowly", weight: 4, low: 10 * time.Minute, high: time.Hour,
			begin: func(_ *world, h *host, _ time.Duration) func() {
				h.disk.setState(probeSlow)
				return func() { h.disk.setState(diskFine) }
			},
		},
	}
}

// makeSlowForGood makes the disk of a voter slow for good, unless the agents could not replace that voter.
func (w *world) makeSlowForGood(h *host) {
	m := w.etcd.memberOn(h)
	spares := w.plan.Hosts - w.plan.Voters - w.countLostForGood()
	if m == nil || m.learner || h.dead || h.disk.chronic || w.memberLostForGood() != nil || spares <= 0 {
		return
	}
	w.counts.SlowForGood++
	h.disk.chronic = true
	h.disk.setState(diskSlow)
}

// memberLostForGood returns a member whose host is dead or whose disk is slow for good, or nil.
func (w *world) memberLostForGood() *member {
	i := slices.IndexFunc(w.etcd.members, func(m *member) bool { return m.host.dead || m.host.disk.chronic })
	if i < 0 {
		return nil
	}
	return w.etcd.members[i]
}

// countLostForGood returns the number of hosts that are dead or whose disk is slow for good.
func (w *world) countLostForGood() (n int) {
	for _, h := range w.hosts {
		if h.dead || h.disk.chronic {
			n++
		}
	}
	return n
}

// repairUnhealthyByHand does the work that only an operator can do about unhealthy voters: it replaces a disk if the
// agents have reached the limit of replacements, removes a surplus voter if all voters are healthy, and releases the
// operation of a host that does not return from it.
func (w *world) repairUnhealthyByHand() {
	if !w.healed || w.plan.Unhealthy == 0 {
		return
	}
	for _, h := range w.hosts {
		if m := w.etcd.memberOn(h); h.disk.chronic && m != nil && !m.learner && w.repairsSpent() {
			h.disk.chronic = false
			h.disk.setState(diskFine)
		}
	}
	w.releaseUnhealthy()
	voters := w.etcd.voters()
	surplus := len(voters) == w.plan.Voters+1 && w.promises.currentOp() == nil
	unhealthy := slices.ContainsFunc(voters, func(m *member) bool {
		return m.downAt != 0 || m.host.disk.state != diskFine || !w.promises.publishes(m.host, health.OK)
	})
	if surplus && !unhealthy && w.now()-w.promises.opSince > byHandAfter &&
		w.now()-w.etcd.membersChangedAt > byHandAfter {
		w.removeMember(voters[0].host)
	}
}

// byHandAfter is how long operators wait before they remove a surplus voter or release the operation of a host that
// does not return from it.
const byHandAfter = 20 * time.Minute

// releaseUnhealthy releases the operation of a host whose disk is slow for good. Such a host never becomes healthy
// again, so its operation does not end and blocks all others until an operator acts.
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
			_ = p.agent.ReleaseOp(ctx, control.ReleaseRequest{Reason: "its disk is permanently slow"}, "an operator")
		})
	}
}

// noteHealth records the time since which a host has reported its health state as SLOW or worse.
func (p *promises) noteHealth(h *host, state health.State) {
	switch before, ok := p.unhealthy[h]; {
	case state != health.Slow && state != health.Stalled && state != health.Failed:
		delete(p.unhealthy, h)
	case !ok:
		p.unhealthy[h] = unhealthyPeriod{p.w.now(), state}
	default:
		p.unhealthy[h] = unhealthyPeriod{before.since, max(before.worst, state)}
	}
}

// unhealthyPeriod is an uninterrupted period in which a host has reported itself as SLOW or worse.
type unhealthyPeriod struct {
	since time.Duration
	worst health.State
}

// slowEvidence is how long etcd's metrics may show a disk as slow after it has recovered.
const slowEvidence = 6 * time.Minute

// whyNotUnhealthy returns why a voter must not be replaced as unhealthy, or "". The voter's host must have reported
// itself as SLOW or worse without interruption: for the grace period, for a minute if it was STALLED in between, or for
// any time if it was FAILED in between. In addition, the host's disk must be in a harmful state or have been recently,
// or the voter's data must be corrupt, or the voter must have been FAILED and have served nothing for the grace period.
func (p *promises) whyNotUnhealthy(m *member) string {
	w, d := p.w, m.host.disk
	reported, ok := p.unhealthy[m.host]
	switch since := w.now() - reported.since + p.staleness(); {
	case !ok:
		return "its own health state is healthy"
	case reported.worst == health.Slow && since < w.plan.Unhealthy,
		reported.worst == health.Stalled && since < time.Minute:
		return fmt.Sprintf("it has been unhealthy for only %s of %s", w.now()-reported.since, w.plan.Unhealthy)
	case m.host.isCorrupt(p.staleness()),
		reported.worst == health.Failed && m.downAt != 0 && w.now()-m.downAt >= w.plan.Unhealthy-p.staleness():
	case d.slowSince == 0 && w.now()-d.slowUntil > slowEvidence+p.staleness():
		return "only its own health state reports it as unhealthy"
	}
	return ""
}

// checkVoteInPlace checks that a host may be promoted before the voter that it replaces is removed.
func (p *promises) checkVoteInPlace(by *process, op *record.Op) {
	who := p.w.etcd.find(uint64(op.Replaces))
	if who == nil || who.learner || p.justIntruded() {
		return
	}
	p.replaces[by.host] = who.id
	if why := p.whyNotUnhealthy(who); why != "" {
		p.breach("P2", by.host, "it is promoted to replace "+who.host.name+": "+why)
	}
}

// checkCompletion checks that a voter may complete a replacement: a voter is surplus, and the replaced voter is dead or
// unhealthy, or was unhealthy when the same operation promoted this host.
func (p *promises) checkCompletion(by *process, op *record.Op, m *member) {
	voters, plan := len(p.w.etcd.voters()), p.w.plan
	resized := p.w.etcd.store.Get(p.w.keys.Size()) != nil
	if plan.Unhealthy == 0 && plan.Dead == 0 || voters%2 != 0 && !resized || voters <= p.w.size() {
		p.breach("P2", by.host, "a voter replaces another one although no voter is surplus")
		return
	}
	why := "unhealthy voters are not replaced"
	if plan.Unhealthy > 0 {
		why = p.whyNotUnhealthy(m)
	}
	if why == "" || op.Target != "" && p.replaces[by.host] == m.id || plan.Dead > 0 && p.whyNotDead(m) == "" {
		return
	}
	p.breach("P2", by.host, m.host.name+" is removed: "+why+"; "+p.whyNotDead(m))
}
