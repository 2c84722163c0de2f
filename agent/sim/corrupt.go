// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/quorumd/quorumd/agent/cluster"
	"github.com/quorumd/quorumd/agent/observe"
)

// drawCorrupts reports whether voters' data may become corrupt. That is the case in half of the clusters that replace
// unhealthy voters and do not lose their quorum. It uses its own random numbers, so that all other draws remain the
// same.
func (p plan) drawCorrupts() bool {
	return rand.New(rand.NewPCG(p.Seed, 11)).IntN(2) == 0 && p.Unhealthy > 0 && p.LostAt == 0
}

// corruption records when a host's data became corrupt, and when it became intact again. The data of a later member is
// intact.
type corruption struct {
	member       uint64 // the member with corrupt data; 0 if the data is intact
	since, until time.Duration
}

// compactionEvery is how often another client compacts etcd's history, as Kubernetes does.
const compactionEvery = 5 * time.Minute

// corruptEvidence is how long corrupt data may count as evidence after it is intact again: until the comparison after
// the next compaction.
const corruptEvidence = compactionEvery + 3*time.Minute

// hasher reads the compactions and hashes of the simulated members. Its methods return at once, so they need no lane.
type hasher struct{ c *client }

// LastCompaction returns the revision of the last compaction.
func (h hasher) LastCompaction(context.Context) (int64, error) {
	w := h.c.p.host.world
	w.mu.Lock()
	defer w.mu.Unlock()
	if !slices.ContainsFunc(w.hosts, func(to *host) bool { return to.unit.running && w.linked(h.c.p.host, to) }) {
		return 0, errors.New("no voter answers")
	}
	return int64(w.now() / compactionEvery), nil
}

// Hashes returns the hash of each member, or the member's error.
func (h hasher) Hashes(_ context.Context, members []cluster.Member, revision int64) map[uint64]cluster.Hash {
	w := h.c.p.host.world
	w.mu.Lock()
	defer w.mu.Unlock()
	out := map[uint64]cluster.Hash{}
	for _, m := range members {
		s, _ := h.c.status(m)
		a := cluster.Hash{Sum: 1, Compacted: revision - 1, Err: s.Err}
		if m := w.etcd.find(m.ID); m != nil && m.host.corrupt.member == m.id {
			a.Sum += uint32(1 + m.host.index)
		}
		out[m.ID] = a
	}
	return out
}

// corruptFaults returns a fault in which a voter's data differs from that of the others until another client has
// overwritten the value.
func corruptFaults() []fault {
	return []fault{{
		name: "etcd's data becomes corrupt", weight: 12, low: 10 * time.Minute, high: 3 * time.Hour, needsCluster: true,
		begin: func(w *world, h *host, _ time.Duration) func() {
			m := w.etcd.memberOn(h)
			isCorrupt := func(o *host) bool { return o.corrupt.member != 0 }
			if m == nil || m.learner || slices.ContainsFunc(w.hosts, isCorrupt) {
				return nil
			}
			w.counts.Corrupted++
			h.corrupt = corruption{member: m.id, since: w.now()}
			w.event(h, eventFault, m.id, "the data of member %x becomes corrupt", m.id)
			return func() {
				h.corrupt.member, h.corrupt.until = 0, w.now()
				w.event(h, eventFault, 0, "the data is intact again")
			}
		},
	}}
}

// isCorrupt reports whether a host's data is corrupt, or was until so recently that other hosts may not have observed
// that it is intact again.
func (h *host) isCorrupt(staleness time.Duration) bool {
	c := h.corrupt
	return c.member != 0 || c.until != 0 && h.world.now()-c.until <= corruptEvidence+staleness
}

// differentCompactions is a faulty Hasher: it returns one voter's hash from a different compaction as if it were
// comparable with the others.
type differentCompactions struct {
	observe.Hasher
	peerURL string
}

func (d differentCompactions) Hashes(ctx context.Context, members []cluster.Member, at int64) map[uint64]cluster.Hash {
	out := d.Hasher.Hashes(ctx, members, at)
	for _, m := range members {
		if a := out[m.ID]; slices.Contains(m.PeerURLs, d.peerURL) {
			a.Sum += 100
			out[m.ID] = a
		}
	}
	return out
}
