// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"math/rand/v2"
	"time"

	"github.com/quorumd/quorumd/agent/policy"
	"github.com/quorumd/quorumd/health"
)

// cluster is a cluster of voters with one spare, in virtual time. Each voter's agent judges its disk in every round
// and, if it leads, decides whether to transfer leadership; the spare's agent decides whether to replace a voter.
type cluster struct {
	hosts  []*host
	leader int
	limits policy.Limits
	rng    *rand.Rand
	make   newJudge
	renew  func(*host, time.Duration)
	now    time.Duration
	skips  int // while nothing can change, one in this many rounds is run

	transfers []*transfer
	watched   []*transfer // the transfers whose writes are still recorded
	replaced  []replacement
	looks     int
}

// replacement records that the policy let the spare replace a voter.
type replacement struct {
	at   time.Duration
	host int
	text string
}

const (
	// round is the interval between two rounds of an agent (timing.interval).
	round = 2 * time.Second
	// While nothing can change, one in quietRounds rounds is run.
	quietRounds = 15
)

// run advances the cluster to the given time. It calls every after each round that it runs, unless every is nil.
func (c *cluster) run(until time.Duration, every func(now time.Duration)) {
	skipped := 0
	for ; c.now < until; c.now += round {
		busy := len(c.watched) > 0
		for i, h := range c.hosts {
			before := len(h.disk.samples)
			h.disk.leads = i == c.leader
			h.disk.advance(c.now + h.phase)
			c.watch(i, h.disk.bases[before:])
			busy = !h.quiet(c.now+h.phase) || busy
		}
		if skipped++; !busy && skipped < c.skips {
			continue
		}
		skipped = 0
		c.round()
		if every != nil {
			every(c.now + round)
		}
	}
}

// round runs one round of every agent, in the order of their phases.
func (c *cluster) round() {
	c.looks += len(c.hosts)
	for i, h := range c.hosts {
		now := c.now + h.phase
		c.read(now)
		compares := i != c.leader && c.publishesWrites(h, now)
		h.look(now, compares, c.comparePeers(h, now), c.commit())
		c.stepDown(h, now)
	}
	c.replace(c.now + round - 1)
	c.judgeTransfers()
}

// read makes visible the host records that have been committed by now.
func (c *cluster) read(now time.Duration) {
	for _, h := range c.hosts {
		h.seen.read(now)
	}
}

// comparePeers sets the other voters' write times, as the host reads them, and reports whether another voter asks this
// host for its write times.
func (c *cluster) comparePeers(h *host, now time.Duration) (asked bool) {
	h.input.Peers.Known, h.input.Peers.Self = true, h.name
	h.input.Peers.All = h.input.Peers.All[:0]
	for _, other := range c.hosts {
		if other != h {
			asked = asked || other.seen.record.asks
			h.input.Peers.All = append(h.input.Peers.All, other.seen.peerWrites(other.name, now))
		}
	}
	return asked
}

// commit returns how long a write to etcd takes: a millisecond for the network, and two syncs, the leader's and a
// follower's. Each is assumed to take as long as a write of the leader's disk.
func (c *cluster) commit() time.Duration {
	return time.Millisecond + 2*c.hosts[c.leader].state.Writes.Least
}

// publishesWrites reports whether the host publishes its write times because the leader is WARM or unhealthy.
func (c *cluster) publishesWrites(h *host, now time.Duration) bool {
	if s := c.hosts[c.leader].seen.record.state; s != health.Warm && !policy.Unhealthy(s) {
		return false
	}
	return policy.PublishesWrites(c.asVoter(h, now))
}

// stepDown lets the leader's agent decide whether to transfer leadership.
func (c *cluster) stepDown(h *host, now time.Duration) {
	if h.index != c.leader || !h.unfit() || !c.hasTarget() {
		return
	}
	d := policy.Decide(c.asVoter(h, now))
	if d.Step.Kind != policy.StepLeaderStepsDown {
		return
	}
	g := c.asVoter(h, now).LeadershipTransfers
	h.inRow, h.stepped = g.NextInRow(c.limits), now
	t := &transfer{at: now, from: h.index, to: int(d.Step.MemberID) - 1, text: d.Step.Why}
	c.transfers, c.watched = append(c.transfers, t), append(c.watched, t)
	c.lead(t.to, now)
}

// hasTarget reports whether a voter that does not lead has published the health state OK. Leadership is transferred
// only to such a voter.
func (c *cluster) hasTarget() bool {
	for i, h := range c.hosts {
		if i != c.leader && h.seen.record.state == health.OK {
			return true
		}
	}
	return false
}

// lead makes a host the leader.
func (c *cluster) lead(i int, now time.Duration) {
	c.leader = i
	c.hosts[i].leadsAt = now
}

// watch adds the durations of a host's writes to the watched transfers from or to that host.
func (c *cluster) watch(i int, took []time.Duration) {
	for _, t := range c.watched {
		if i == t.from {
			t.left = append(t.left, took...)
		}
		if i == t.to {
			t.took = append(t.took, took...)
		}
	}
}

// judgeTransfers stops watching the transfers that are at least transferSpan old.
func (c *cluster) judgeTransfers() {
	open := c.watched[:0]
	for _, t := range c.watched {
		if c.now-t.at < transferSpan {
			open = append(open, t)
		}
	}
	c.watched = open
}

// replace lets the spare's agent decide whether to replace a voter. A replaced voter continues with a new disk and a
// new judge.
func (c *cluster) replace(now time.Duration) {
	suspect := false
	for _, h := range c.hosts {
		if !policy.Unhealthy(h.seen.record.state) {
			h.witness = witness{}
			continue
		}
		suspect = true
		h.witness.look(now, h.disk, c.rng, h.limits.FsyncSlow)
	}
	if !suspect {
		return
	}
	v := c.asSpare(now)
	d := policy.Decide(v)
	if d.Step.Kind != policy.StepTakeLock && d.Step.Kind != policy.StepBeginReplace {
		return
	}
	for _, u := range policy.UnhealthyVoters(v) {
		if u.Held != "" || u.GraceLeft > 0 {
			continue
		}
		i := int(u.Member.ID) - 1
		c.replaced = append(c.replaced, replacement{now, i, u.Text(c.limits.UnhealthyGrace)})
		if i == c.leader {
			c.lead((i+1)%len(c.hosts), now)
		}
		c.renew(c.hosts[i], now)
		return
	}
}

// repairs returns how many voters were replaced in the last day.
func (c *cluster) repairs(now time.Duration) int {
	n := 0
	for _, r := range c.replaced {
		if now-r.at < 24*time.Hour {
			n++
		}
	}
	return n
}
