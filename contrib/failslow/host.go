// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"math/bits"
	"time"

	"github.com/quorumd/quorumd/agent/diskrecord"
	"github.com/quorumd/quorumd/agent/policy"
	"github.com/quorumd/quorumd/health"
)

// judge derives a health state from readings, as [health.Judge] does in an agent.
type judge interface {
	Observe(health.Input) (health.Assessment, []health.Change)
}

// newJudge creates the judge of a host.
type newJudge func(health.Thresholds) (judge, error)

// host is a simulated voter: its disk, its judge, and what its agent does in a leadership transfer.
type host struct {
	name   string
	index  int
	family family
	phase  time.Duration // offset of the agent's rounds
	disk   *simulatedDisk
	judge  judge
	limits health.Thresholds
	input  health.Input

	state     health.Assessment
	publisher *diskrecord.Publisher
	seen      seen
	writes    int            // how many times the host record was written
	wrote     map[string]int // how many times each part of the host record had changed
	began     time.Duration

	leadsAt time.Duration // when the host became the leader
	unfitAt time.Duration // when the host became unfit to lead; 0 if it is not (policy.UnfitToLead)
	// when the host became unfit to lead for a cause that still holds; 0 if it is not (policy.UnfitNow)
	unfitNowAt time.Duration
	stepped    time.Duration // when the host last transferred leadership
	inRow      int

	sign      uint64 // one bit for each of the newest samples, set if the write took longer than usual
	noted     int    // number of the disk's current samples that are already in sign
	busyUntil time.Duration
	witness   witness
}

// member returns the host's member ID.
func (h *host) member() uint64 { return uint64(h.index) + 1 }

// unfit reports whether the host is unfit to lead.
func (h *host) unfit() bool { return policy.UnfitToLead(h.policyHealth()) }

// policyHealth returns the host's own health as its agent's view contains it.
func (h *host) policyHealth() policy.Health {
	a := h.state
	return policy.Health{
		State: a.State, Qualified: a.Qualified, Text: a.Text,
		Ungated:    health.Everything.Without(a.Gates),
		Hangs:      h.input.Disk.InFlight > h.limits.Stall,
		SlowWrites: a.OnlySlowWrites(health.Leadership), FastAgain: !a.SlowNow,
		Habitual: a.Habitual, AsUsual: a.AsUsual, Urgent: a.Urgent,
		Writes:  a.Writes.Least,
		Figures: policy.WriteFigures{P50: a.Writes.P50, P90: a.Writes.LeastP90, Tails: a.Writes.LeastTails},
	}
}

// look judges the disk's writes until now, and publishes the result if it has changed. compares means that the leader
// is comparing write times; asked means that another voter asks this host for its figures.
func (h *host) look(now time.Duration, compares, asked bool, commit time.Duration) {
	h.input.Now, h.input.Wall, h.input.Member = now, time.Unix(0, 0).Add(now), true
	h.input.Disk = h.disk.reading(now)
	h.state, _ = h.judge.Observe(h.input)
	h.disk.forget()
	h.noted = 0
	since(&h.unfitAt, h.unfit(), now)
	since(&h.unfitNowAt, policy.UnfitNow(h.policyHealth()), now)
	if r := recordOf(h.publisher, now, h.input.Wall, h.state, compares, asked); r != h.seen.newest() {
		for _, field := range r.changed(h.seen.newest()) {
			h.wrote[field]++
		}
		h.seen.write(r, now+commit)
		h.writes++
	}
}

// quiet reports whether a call of look would change nothing: the state is OK, the host asks for no write times, no
// recent write was contaminated or took longer than FsyncWarm, and at least half of the newest samples took no longer
// than usual.
func (h *host) quiet(now time.Duration) bool {
	usual := time.Duration(1.8 * h.disk.body)
	for _, s := range h.disk.samples[h.noted:] {
		h.sign = h.sign<<1 | bit(s.Latency > usual)
		if s.Latency > h.limits.FsyncWarm || s.Contaminated {
			h.busyUntil = now + recentLook
		}
	}
	h.noted = len(h.disk.samples)
	pending := h.disk.pending
	if bits.OnesCount64(h.sign&signMask) > signMost || pending.end != 0 && now-pending.start > h.limits.FsyncWarm {
		h.busyUntil = now + recentLook
	}
	return h.state.State == health.OK && !h.state.AsksPeers && now >= h.busyUntil
}

const (
	// recentLook is how long no round is skipped after a write that was slow, unfinished or contaminated.
	recentLook = time.Minute
	// A host is quiet only while at most signMost of its newest samples took longer than usual. That is half of the
	// samples that signMask selects, so their median is not longer than usual.
	signMask = 1<<32 - 1
	signMost = 16
)

func bit(is bool) uint64 {
	if is {
		return 1
	}
	return 0
}

func hostName(i int) string { return fmt.Sprintf("n%d", i+1) }
