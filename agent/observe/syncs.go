// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"slices"
	"time"

	"github.com/quorumd/quorumd/agent/policy"
	"github.com/quorumd/quorumd/agent/record"
	"github.com/quorumd/quorumd/agent/round"
	"github.com/quorumd/quorumd/health"
)

// syncs remembers what the local etcd has lately counted of its own syncs: a witness of how its disk is, beside the
// probe.
type syncs struct {
	at   []time.Duration // of the looks, oldest first
	seen []health.Histogram
	// the bucket of the p99 of what has grown since the oldest; the last has no upper end
	over, upto time.Duration
}

const (
	syncsSpan   = 5 * time.Minute
	syncsFewest = 100 // of fewer, the slowest alone would be 99 of 100
	syncsKept   = 64
)

// slow takes what etcd has told last, and gives up to what 99 of 100 of its syncs took; 0 unless more than one in a
// hundred took longer than a limit for sure. etcd counts in buckets: one that the limit lies in proves nothing.
func (s *syncs) slow(told health.EtcdReading, limit time.Duration) time.Duration {
	s.take(told.At, told.WALFsync)
	if s.over < limit {
		return 0
	}
	return max(s.over, s.upto)
}

func (s *syncs) take(at time.Duration, now health.Histogram) {
	last := len(s.at) - 1
	if !now.Known {
		*s = syncs{}
		return
	}
	if last >= 0 && s.at[last] >= at {
		return
	}
	if last >= 0 {
		if _, same := now.Delta(s.seen[last]); !same { // another etcd: it counts from zero
			*s = syncs{}
		}
	}
	s.at, s.seen = append(s.at, at), append(s.seen, now)
	for len(s.at) > 2 && at-s.at[0] > syncsSpan || len(s.at) > syncsKept {
		s.at, s.seen = slices.Delete(s.at, 0, 1), slices.Delete(s.seen, 0, 1)
	}
	s.over, s.upto = 0, 0
	if grown, same := now.Delta(s.seen[0]); same && grown.Count() >= syncsFewest {
		p99, _ := grown.Quantile(990)
		s.over, s.upto = p99.Over, p99.Upto
	}
}

// ails makes the view of what speaks against a host, and since when. What another agent there says is another word.
func (b *Builder) ails(r *round.Round, h record.Host, state health.State) policy.Ails {
	since := func(what string, holds bool) time.Duration {
		name := said + "host/" + h.ID + "/" + what
		if !holds {
			return b.since.truth(name, false, r.At, r.Number)
		}
		return max(1, b.since.Of(name, h.Instance, r.At, r.Number))
	}
	return policy.Ails{
		For:      since("sick", state == health.Slow || state == health.Stalled || state == health.Failed),
		HangsFor: since("hangs", state == health.Stalled || state == health.Failed),
		Fsync:    time.Duration(h.EtcdFsync * float64(time.Second)), FsyncFor: since("syncs", h.EtcdFsync > 0),
	}
}
