// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"fmt"
	"strconv"
	"time"

	"github.com/quorumd/quorumd/agent/config"
	"github.com/quorumd/quorumd/agent/policy"
	"github.com/quorumd/quorumd/agent/round"
)

// marksKept is the number of revisions that an agent remembers within space.retain.
const marksKept = 20

// revisionMark is a revision of the store with the time at which it was current.
type revisionMark struct {
	at       time.Duration
	revision int64
}

// spaceTracker remembers which revision etcd had at which time, so that a compaction keeps the history of space.retain.
// It also remembers the end of the last gap in this agent's observations that was long enough for an alarm to end
// unnoticed.
type spaceTracker struct {
	marks    []revisionMark
	at       time.Duration // time of the last observation
	gapEnded time.Duration
}

// observe adds the current revision if the last one is old enough, and drops those that are no longer needed.
func (s *spaceTracker) observe(now, retain time.Duration, revision int64) {
	if now-s.at >= policy.PermitSettle {
		s.gapEnded = now
	}
	s.at = now
	if n := len(s.marks); n == 0 || now-s.marks[n-1].at >= retain/marksKept {
		s.marks = append(s.marks, revisionMark{now, revision})
	}
	for len(s.marks) > 1 && now-s.marks[1].at >= retain { // a newer mark is old enough as well
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

// The names of durations about a NOSPACE alarm. bridgeSpace preserves the first two while this agent's defragmentation
// keeps members from answering.
const (
	noSpaceSince = carried + "no space"
	permitsSince = carried + "permits"
	silentSince  = carried + "silent/"
)

// bridgeSpace keeps the durations about an alarm over rounds without an answer while an online defragmentation by this
// agent runs, because a cluster of a single voter does not answer meanwhile.
func (b *Builder) bridgeSpace(r *round.Round) {
	if r.Did.Defragmenting == 0 {
		return
	}
	b.space.at = r.At
	for _, name := range []string{noSpaceSince, permitsSince} {
		b.since.bridge(name, r.At-policy.DefragmentMax, r.Number)
	}
}

// spaceOf builds the view of the space in etcd's databases. It runs after members, which reads the alarms. A permit, a
// compaction and a defragmentation count only for the alarm during which this agent claimed or requested them.
func (b *Builder) spaceOf(v *policy.View, r *round.Round) policy.Space {
	c, roomy := b.config.Space, v.Cluster.Roomy
	b.space.observe(r.At, c.Retain, r.Revision)
	s := policy.Space{
		Remediate: c.NoSpace == config.NoSpaceRemediate, Permits: len(r.Permits),
		PermitsFor: b.since.Of(permitsSince, strconv.Itoa(len(r.Permits)), r.At, r.Number),
		Keep:       b.space.keep(r.At, c.Retain), Compacted: policy.Never, Defragmenting: r.Did.Defragmenting,
	}
	s.Automatic = b.automaticDefrag(r)
	for i := range v.Cluster.Members {
		m := &v.Cluster.Members[i]
		name := fmt.Sprintf("%s%x", silentSince, m.ID)
		if since := b.since.Of(name, strconv.FormatBool(m.Live), r.At, r.Number); !m.Live {
			m.SilentFor = since
		}
	}
	since := b.since.Of(noSpaceSince, strconv.FormatBool(roomy), r.At, r.Number)
	if roomy {
		s.RoomyFor = since
		return s
	}
	since = min(since, r.At-b.space.gapEnded)
	if age := r.Did.Permit.Age(r.At); age <= since {
		s.Mine = max(0, policy.PermitValid-age)
	}
	if age := r.Did.Compacted.Age(r.At); age <= since {
		s.Compacted, s.Kept = age, r.Did.Kept
	}
	for _, d := range r.Did.Defragmented {
		age := r.At - d.At
		switch {
		case age > min(since, s.Compacted, policy.DefragmentAgain):
			continue
		case d.At >= r.StatusesAt: // the statuses are older than the defragmentation
			s.Defragmenting = d.MemberID
			continue
		}
		attempt := policy.DefragAttempt{MemberID: d.MemberID}
		if d.Err != nil {
			attempt.Failed = d.Err.Error()
		}
		s.Attempts = append(s.Attempts, attempt)
	}
	return s
}

// automaticDefrag builds the view of automatic defragmentations of this host's own member. If the wall clock was set
// back, the last defragmentation counts as long ago.
func (b *Builder) automaticDefrag(r *round.Round) policy.AutomaticDefrag {
	out := policy.AutomaticDefrag{Windows: b.config.Space.Defrag == config.DefragWindows, Ended: policy.Never}
	if out.Windows {
		out.Shut = b.config.Maintenance.Shut(r.Wall)
	}
	if age := r.Wall.Sub(r.Noted.DefragEnded); !r.Noted.DefragEnded.IsZero() && age >= 0 {
		out.Ended = age
	}
	return out
}
