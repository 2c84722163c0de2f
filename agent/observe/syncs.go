// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"context"
	"fmt"
	"time"

	"github.com/quorumd/quorumd/agent/policy"
	"github.com/quorumd/quorumd/agent/poll"
	"github.com/quorumd/quorumd/agent/round"
	"github.com/quorumd/quorumd/health"
)

const (
	syncsSpan   = 5 * time.Minute
	syncsFewest = 100 // with fewer samples, a single slow fsync would raise the p99
	syncsFew    = 20  // with syncsFew to syncsFewest samples, more than half must be slow, which rules out chance
	// syncsEvery is the interval between two readings of the metrics of an unhealthy voter's etcd, and syncsOldest the
	// maximum age of the last one.
	syncsEvery, syncsOldest = 10 * time.Second, 35 * time.Second
	// syncsClean is the time without a slow fsync after which the evidence ends.
	syncsClean = time.Minute
)

// witness is the evidence about one voter's fsyncs that this host has read from the metrics of that voter's etcd. This
// evidence about a disk is independent of the probe on that host and of all records.
type witness struct {
	look   poll.Poller[health.EtcdReading]
	at     time.Duration // when the newest reading was taken
	last   health.Histogram
	recent health.Recent
	p99    time.Duration // over the last minutes if slow, otherwise 0
	slowAt time.Duration // when a slow fsync was last counted
	since  time.Duration // when the evidence began; 0 if there is none
	absent string
}

// take evaluates each reading once. It ignores an empty reading, so that the known values grow old.
func (w *witness) take(seen health.EtcdReading, limit time.Duration) {
	at, counted := seen.At, seen.WALFsync
	if w.absent = counted.Absent; at == w.at || !counted.Known {
		return
	}
	if at-w.at > syncsOldest { // the time in between is unknown
		w.recent, w.slowAt, w.since = health.Recent{}, 0, 0
	}
	w.at = at
	if grown, same := counted.Delta(w.last); same {
		if worst, some := grown.Quantile(1000); some && worst.Over >= limit {
			w.slowAt = at
		}
	}
	w.last, w.p99 = counted, slowSyncs(&w.recent, seen, limit)
	switch {
	case w.p99 == 0, w.slowAt == 0, at-w.slowAt >= syncsClean:
		w.since = 0
	case w.since == 0:
		w.since = at
	}
}

// fsyncs returns the evidence at the given time.
func (w *witness) fsyncs(now time.Duration) policy.Fsyncs {
	switch {
	case w.at == 0, now-w.at > syncsOldest && w.absent != "":
		return policy.Fsyncs{Absent: w.absent}
	case now-w.at > syncsOldest:
		return policy.Fsyncs{Absent: "its etcd has not answered for a while"}
	}
	f := policy.Fsyncs{Known: true, Age: now - w.at, P99: w.p99}
	if w.since != 0 {
		f.SlowFor = max(1, now-w.since)
	}
	return f
}

// slowSyncs returns the p99 of etcd's own fsyncs over the last minutes, as an upper bound. It returns 0 unless more
// than one in a hundred certainly took longer than the limit, or more than half if the disk is so slow that etcd
// completes few. etcd counts in histogram buckets: the bucket that contains the limit proves nothing.
func slowSyncs(own *health.Recent, seen health.EtcdReading, limit time.Duration) time.Duration {
	grown, _ := own.Take(seen.At, seen.WALFsync, syncsSpan)
	p99, _ := grown.Quantile(990)
	middle, _ := grown.Quantile(500)
	switch n := grown.Count(); {
	case n < syncsFew, n < syncsFewest && middle.Over < limit, p99.Over < limit:
		return 0
	}
	return max(p99.Over, p99.Upto)
}

// lookAtFsyncs reads the metrics of voters with unhealthy host records. It uses the client URLs from the member list,
// which is independent of those records. A resting host (see pace) reads none, because it never decides on a
// replacement.
func (o *Observer) lookAtFsyncs(ctx context.Context, r *round.Round) {
	if o.opt.MemberMetrics == nil || !o.pace.attends {
		o.witnesses = nil
		return
	}
	now, suspects := o.opt.Now(), o.suspects(r)
	if r.Reachable {
		for id := range o.witnesses {
			if _, is := suspects[id]; !is {
				delete(o.witnesses, id)
			}
		}
	}
	r.Fsyncs = map[uint64]policy.Fsyncs{}
	for id, url := range suspects {
		w := o.witnesses[id]
		if w == nil {
			if w = new(witness); o.witnesses == nil {
				o.witnesses = map[uint64]*witness{}
			}
			o.witnesses[id] = w
		}
		w.look.Refresh(ctx, o.opt.Now, syncsEvery, lookTimeout, func(ctx context.Context) (health.EtcdReading, error) {
			at := o.opt.Now()
			seen := o.opt.MemberMetrics(ctx, url)
			// etcd's default, http://localhost:2379, leads to this host's own member
			if seen.Member != 0 && seen.Member != id {
				why := fmt.Sprintf("its client URL leads to member %x", seen.Member)
				seen = health.NotAvailable[health.EtcdReading](why)
			}
			seen.At = at
			return seen, nil
		})
		if seen, _, fresh := w.look.Get(now, syncsOldest); fresh {
			w.take(seen, o.opt.Config.Disk.FsyncSlow)
		}
		r.Fsyncs[id] = w.fsyncs(now)
	}
}

// suspects returns the client URLs of voters with unhealthy host records, by member ID.
func (o *Observer) suspects(r *round.Round) map[uint64]string {
	all := map[uint64]string{}
	for _, h := range r.Hosts {
		m, listed := r.Membership.Recognize(uint64(h.MemberID), h.PeerURL)
		state, err := health.ParseState(h.Health)
		if err == nil && listed && !m.Learner && len(m.ClientURLs) > 0 && policy.Unhealthy(state) {
			all[m.ID] = m.ClientURLs[0]
		}
	}
	return all
}
