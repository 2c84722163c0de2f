// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package publish

import (
	"slices"
	"time"

	"github.com/quorumd/quorumd/agent/diskrecord"
	"github.com/quorumd/quorumd/agent/record"
	"github.com/quorumd/quorumd/agent/round"
)

// reachability is what this host publishes about its network connections to the other members. While the set of members
// is unchanged, it changes at most once in six probes, or once in ten minutes if only a response time changes.
// Therefore, an unsteady network makes a member write at most once a minute, and all spares of a fleet together write
// less than twice a second. A member publishes at once that another member is lost, or reachable again.
type reachability struct {
	shown []record.Reachability
	begun bool
	at    time.Duration // when the published observations last changed
	lost  map[uint64]lost
}

// lost is the time at which a member became lost: on this host's monotonic clock, and as published.
type lost struct {
	at time.Duration
	on time.Time
}

// minProbes is the minimum number of probes between two changes of a member's published state.
const minProbes = 6

// rttEvery is the minimum interval between two changes of the published response times if nothing else changes.
const rttEvery = 10 * time.Minute

// steady returns the observations to publish for a round.
func (s *reachability) steady(r *round.Round) []record.Reachability {
	now, every := r.At, r.ProbeEvery
	if !s.begun {
		s.begun, s.at = true, now
	}
	next, known := s.quantised(r)
	s.addLost(next, r)
	stood := now - s.at
	others := known && len(next) > 0 && !slices.EqualFunc(next, s.shown, func(a, b record.Reachability) bool {
		return a.MemberID == b.MemberID
	}) // publish a new set of members at once: after the first probes, only operations change the set
	other := !slices.EqualFunc(next, s.shown, func(a, b record.Reachability) bool {
		return a.MemberID == b.MemberID && a.Peer == b.Peer && a.Client == b.Client
	})
	lost := lostDiffers(next, s.shown) || lostDiffers(s.shown, next)
	if others || lost || other && stood >= minProbes*every || !slices.Equal(next, s.shown) && stood >= rttEvery {
		s.shown, s.at = next, now
	}
	return s.shown
}

// addLost adds since when members have been lost, their failure domains, and whether this host's etcd is connected to
// them. It adds nothing if hosts in this host's role do not report dead voters.
func (s *reachability) addLost(next []record.Reachability, r *round.Round) {
	before := s.lost
	s.lost = map[uint64]lost{}
	if !r.Decision.Role.ReportsDeadVoters() {
		return
	}
	for _, m := range r.Probes {
		i := slices.IndexFunc(next, func(to record.Reachability) bool { return uint64(to.MemberID) == m.Member })
		if i < 0 || !m.Lost {
			continue
		}
		l, same := before[m.Member]
		if !same || l.at != m.LostAt {
			l = lost{m.LostAt, r.Reachability(m).LostSince}
		}
		s.lost[m.Member], next[i].LostSince = l, l.on
		next[i].Link, next[i].Domain = r.Link(m.Member), r.View.DomainOf(m.Member)
		next[i].Learner = r.View.LearnerNoteOf(m.Member)
	}
}

// lostDiffers reports whether list contains a lost member that other does not report in the same way.
func lostDiffers(list, other []record.Reachability) bool {
	return slices.ContainsFunc(list, func(a record.Reachability) bool {
		return !a.LostSince.IsZero() && !slices.ContainsFunc(other, func(b record.Reachability) bool {
			return a.MemberID == b.MemberID && a.LostSince.Equal(b.LostSince) && a.Link == b.Link &&
				a.Domain == b.Domain && a.Learner == b.Learner
		})
	})
}

// seenNow returns how this host now reaches the members, for its own row in the status.
func seenNow(r *round.Round) []record.Reachability {
	var now reachability
	out, _ := now.quantised(r)
	for i := range out {
		for _, m := range r.Probes {
			if record.MemberID(m.Member) == out[i].MemberID {
				out[i].LostSince = r.Reachability(m).LostSince
			}
		}
	}
	return out
}

// quantised returns the observations rounded for publication, without the times of losses, and whether they are
// complete.
func (s *reachability) quantised(r *round.Round) (out []record.Reachability, known bool) {
	known = true
	for _, m := range r.Probes[:min(len(r.Probes), record.MaxReachability)] {
		to := r.Reachability(m)
		to.LostSince = time.Time{}
		if to.Peer == record.PortUnknown && to.Client == record.PortUnknown && !m.Lost {
			known = false
			continue
		}
		rtt := max(m.Peer.RTT, m.Client.RTT)
		to.RTTSeconds = diskrecord.Octave(rtt)
		i := slices.IndexFunc(s.shown, func(old record.Reachability) bool { return old.MemberID == to.MemberID })
		if i >= 0 && diskrecord.NearOctave(rtt, s.shown[i].RTTSeconds) {
			to.RTTSeconds = s.shown[i].RTTSeconds
		}
		out = append(out, to)
	}
	return out, known
}
