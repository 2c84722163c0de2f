// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"cmp"
	"math/bits"
	"slices"
	"time"

	"github.com/quorumd/quorumd/health"
)

// candidates returns the hosts that are ready to become a voter or standby, best first. All ranks come from published
// records, so that all hosts rank alike; only this host's readiness is its current one.
func candidates(v View, target Role, selfReady bool) []Host {
	voting := map[string]int{} // voters by failure domain, except those to be replaced
	for _, h := range v.Hosts {
		if h.Role == RoleVoter && !v.isOutgoing(h) {
			voting[h.Domain]++
		}
	}
	list := slices.DeleteFunc(slices.Clone(v.Hosts), func(h Host) bool {
		ready := h.Waiting == ""
		if h.ID == v.Self.ID {
			ready = selfReady
		}
		fits := h.Role == RoleSpare || h.Role == RoleJoining || (target == RoleVoter && h.Role == RoleStandby)
		return !ready || !h.Manage || !fits
	})
	slices.SortFunc(list, func(a, b Host) int {
		return cmp.Or(
			cmp.Compare(roleRank(a.Role), roleRank(b.Role)), // a learner needs no copy of the database
			cmp.Compare(voting[a.Domain], voting[b.Domain]), // spread over failure domains
			cmp.Compare(known(a.P99), known(b.P99)),         // the faster disk
			cmp.Compare(a.ID, b.ID),
		)
	})
	return list
}

// isOutgoing reports whether a host's voter is to be replaced. It uses the last observations, so that resting hosts
// rank like all others.
func (v View) isOutgoing(h Host) bool {
	for m := range v.Cluster.voters() {
		if m.PeerURL != h.PeerURL {
			continue
		}
		dead, _ := v.reportedDead(m)
		s, healthy := v.reportedUnhealthy(m)
		return v.Op.replacesMember(m) || v.Limits.DeadGrace > 0 && !m.Live && dead >= v.Limits.DeadGrace ||
			v.Limits.UnhealthyGrace > 0 && healthy == "" && s.GraceLeft == 0
	}
	return false
}

// Next returns the IDs of at most n spares that join next, best first. Only a host that is not a spare calls it.
func Next(v View, n int) []string {
	voters, _ := v.Cluster.Counts()
	target := RoleVoter
	if voters >= v.Target.Voters && v.Cluster.learning() < v.Target.Standbys {
		target = RoleStandby
	}
	var out []string
	for _, h := range candidates(v, target, false) {
		if h.Role == RoleSpare && len(out) < n {
			out = append(out, h.ID)
		}
	}
	return out
}

// JoinQueue returns the IDs of the hosts that are ready to vote, in the order in which they join or replace a voter.
// Hosts that read the same records return the same order, except while only some of them observe that a voter is dead
// or unhealthy. The lock decides then.
func JoinQueue(v View) []string {
	var out []string
	for _, h := range candidates(v, RoleVoter, selfReady(v)) {
		out = append(out, h.ID)
	}
	return out
}

// askedEarlier orders hosts by the age of their request to be taken down. Only this order depends on the hosts' wall
// clocks.
func askedEarlier(a, b Host) int {
	return cmp.Or(cmp.Compare(a.AskedAt, b.AskedAt), cmp.Compare(a.ID, b.ID))
}

// betterLeader reports whether a voter is a better leader than another.
func betterLeader(a Member, ah Host, b Member, bh Host) bool {
	wants := func(h Host) int {
		if h.Wants != "" {
			return 1
		}
		return 0
	}
	return cmp.Or(
		cmp.Compare(wants(ah), wants(bh)),
		cmp.Compare(leadershipRank(ah), leadershipRank(bh)),
		cmp.Compare(known(ah.P99), known(bh.P99)),
		cmp.Compare(distance(a), distance(b)),
		cmp.Compare(b.LiveFor, a.LiveFor),
		cmp.Compare(a.ID, b.ID),
	) < 0
}

// distance returns how far away a member is, in steps that double from 2 ms on, so that differences within one data
// center do not count.
func distance(m Member) int { return bits.Len64(uint64(known(m.RTT) / (2 * time.Millisecond))) }

// leadershipRank ranks a host last whose health state rules out leading.
func leadershipRank(h Host) int {
	if blocks(h.Health, h.Ungated, health.Leadership) {
		return 1
	}
	return 0
}

// patience returns how long a host at a position of the queue waits for the hosts before it. A host that counts as
// ready and still does not act must not block the others forever.
func patience(v View, position int) time.Duration {
	return max(v.Limits.Settle, v.Limits.Cooldown) + time.Duration(position)*ttlsPerPosition*v.Limits.LockTTL
}

// ttlsPerPosition is how many lock TTLs a host waits for each host before it in the queue.
const ttlsPerPosition = 2

// NextInRollout returns the IDs of at most n hosts without a member that are taken down next, in order. waiting are the
// hosts that a rollout has not reached. Members are not included, since they read in every round anyway; but the next
// host of a rollout always is.
func NextInRollout(v View, waiting []string, n int) []string {
	var out []string
	for _, h := range queued(v) {
		if h.Role == RoleSpare && len(out) < n {
			out = append(out, h.ID)
		}
	}
	if id := RolloutNext(v, waiting); id != "" && len(out) < n && !slices.Contains(out, id) {
		out = append(out, id)
	}
	return out
}

// known returns the value for comparison: an unknown one, 0, ranks behind all known ones.
func known(value time.Duration) time.Duration {
	if value == 0 {
		return Never
	}
	return value
}

func roleRank(r Role) int {
	if r == RoleSpare {
		return 1
	}
	return 0
}

// voterPosition returns this host's position among the live voters, by member ID, or -1 if it is no live voter. If any
// voter may do some work, the first one tries it, and each further one a lock TTL later.
func voterPosition(v View) int {
	position := 0
	for _, m := range v.Cluster.Members { // by ID
		if m.Learner || !m.Live {
			continue
		}
		if m.PeerURL == v.Self.PeerURL {
			return position
		}
		position++
	}
	return -1
}
