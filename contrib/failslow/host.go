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

// judge derives a health state from readings; [health.Judge] is the real one.
type judge interface {
	Observe(health.Input) (health.Assessment, []health.Change)
}

// newJudge returns the judge of a host.
type newJudge func(health.Thresholds) (judge, error)

// host is a voter: its disk, its judge, and its agent's part in a leadership transfer.
type host struct {
	name   string
	index  int
	family family
	phase  time.Duration // the offset of its rounds
	disk   *disk
	judge  judge
	limits health.Thresholds
	input  health.Input

	state     health.Assessment
	publisher *diskrecord.Publisher
	seen      seen
	writes    int            // how often its record was written
	wrote     map[string]int // how often each part of it had changed
	began     time.Duration

	leadsAt time.Duration // when it began to lead
	unfitAt time.Duration // when its health state began to rule out leading
	stepped time.Duration // when it last requested a transfer
	inRow   int

	sign      uint64 // of the newest samples: one bit each, set if it took long
	noted     int    // how many of the disk's samples are in sign
	busyUntil time.Duration
	witness   witness
}

// member returns the host's member ID.
func (h *host) member() uint64 { return uint64(h.index) + 1 }

// unfit reports whether the host has a finding that rules out leading.
func (h *host) unfit() bool { return policy.UnfitToLead(h.policyHealth()) }

// policyHealth returns the host's own health as its agent's view holds it.
func (h *host) policyHealth() policy.Health {
	a := h.state
	return policy.Health{
		State: a.State, Qualified: a.Qualified, Text: a.Text, Ungated: health.Everything.Without(a.Gates),
		Hangs:      h.input.Disk.InFlight > h.limits.Stall,
		SlowWrites: a.OnlySlowWrites(health.Leadership), FastAgain: !a.SlowNow, Writes: a.Writes.Least,
		Figures: policy.WriteFigures{P50: a.Writes.P50, P90: a.Writes.P90, Tails: a.Writes.Tails},
	}
}

// look judges what the disk has done until now. compares reports that the leader compares writes, and asked that
// another voter asks for its figures.
func (h *host) look(now time.Duration, compares, asked bool, commit time.Duration) {
	h.input.Now, h.input.Wall, h.input.Member = now, time.Unix(0, 0).Add(now), true
	h.input.Disk = h.disk.reading(now)
	h.state, _ = h.judge.Observe(h.input)
	h.disk.forget()
	h.noted = 0
	since(&h.unfitAt, h.unfit(), now)
	if r := recordOf(h.publisher, now, h.input.Wall, h.state, compares, asked); r != h.seen.newest() {
		for _, field := range r.changed(h.seen.newest()) {
			h.wrote[field]++
		}
		h.seen.write(r, now+commit)
		h.writes++
	}
}

// quiet reports whether a look now could change nothing: the state is OK, and the newest samples are neither over the
// limit nor, in their majority, longer than usual.
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
	// recentLook is how long a host is looked at in every round after something that might matter.
	recentLook = time.Minute
	// signMost of the newest samples, as many as signMask has bits, may be longer than usual in a quiet time: then
	// their median is not.
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
