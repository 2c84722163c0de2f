// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"strconv"
	"time"

	"github.com/quorumd/quorumd/agent/config"
	"github.com/quorumd/quorumd/agent/policy"
	"github.com/quorumd/quorumd/agent/round"
)

// marksKept is the number of revisions that an agent remembers within space.retain.
const marksKept = 20

// revisionMark is the revision of the store at a time.
type revisionMark struct {
	at       time.Duration
	revision int64
}

// spaceTracker remembers which revision etcd had when, so that a compaction keeps the history of space.retain.
type spaceTracker struct{ marks []revisionMark }

// observe adds the current revision if the last one is old enough, and drops those that are no longer needed.
func (s *spaceTracker) observe(now, retain time.Duration, revision int64) {
	if n := len(s.marks); n == 0 || now-s.marks[n-1].at >= retain/marksKept {
		s.marks = append(s.marks, revisionMark{now, revision})
	}
	for len(s.marks) > 1 && now-s.marks[1].at >= retain { // the first one is not the newest that is old enough
		s.marks = s.marks[1:]
	}
}

// keep returns the newest known revision that is at least as old as retain; 0 if none is.
func (s *spaceTracker) keep(now, retain time.Duration) int64 {
	if len(s.marks) == 0 || now-s.marks[0].at < retain {
		return 0
	}
	return s.marks[0].revision
}

// spaceOf returns what this host knows about freeing space. It runs after members, which reads the alarms. A permit
// and a compaction count only for the alarm during which this agent claimed or made them.
func (b *Builder) spaceOf(v *policy.View, r *round.Round) policy.Space {
	c, roomy := b.config.Space, v.Cluster.Roomy
	b.space.observe(r.At, c.Retain, r.Revision)
	s := policy.Space{
		Remediate: c.NoSpace == config.NoSpaceRemediate, Permits: len(r.Permits),
		PermitsFor: b.since.Of(carried+"permits", strconv.Itoa(len(r.Permits)), r.At, r.Number),
		Keep:      b.space.keep(r.At, c.Retain), Compacted: policy.Never, Defragmenting: r.Did.Defragmenting,
	}
	since := b.since.Of(carried+"no space", strconv.FormatBool(roomy), r.At, r.Number)
	if roomy {
		s.RoomyFor = since
		return s
	}
	if age := r.Did.Permit.Age(r.At); age <= since {
		s.Mine = max(0, policy.PermitValid-age)
	}
	if age := r.Did.Compacted.Age(r.At); age <= since {
		s.Compacted, s.Kept, s.Tried = age, r.Did.Kept, r.Did.Defragmented.Age(r.At) < age
	}
	return s
}
