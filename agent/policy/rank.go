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

// candidates returns the hosts that are ready to become voters, or the standby, best first. This host is judged by its
// own current values, the others by what they have published, so that all hosts rank alike.
func candidates(v View, target Role, selfReady bool) []Host {
	voting := map[string]int{} // voters by failure domain, without those to be replaced
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
			cmp.Compare(roleRank(a.Role), roleRank(b.Role)), // one that is caught up needs no copy
			cmp.Compare(voting[a.Domain], voting[b.Domain]), // spread over failure domains
			cmp.Compare(known(a.P99), known(b.P99)),         // the quicker disk
			cmp.Compare(a.ID, b.ID),
		)
	})
	return list
}

// goes reports whether the voter of a host is to be replaced: by the last observations, so that hosts that look rarely
// rank alike.
func (v View) isOutgoing(h Host) bool {
	for m := range v.Cluster.voters() {
		if m.PeerURL != h.PeerURL {
			continue
		}
		dead, _ := v.reportedDead(m)
		s, well := v.reportedUnhealthy(m)
		return v.Op.replacesMember(m) || v.Limits.DeadGrace > 0 && !m.Live && dead >= v.Limits.DeadGrace ||
			v.Limits.UnhealthyGrace > 0 && well == "" && s.GraceLeft == 0
	}
	return false
}

// Next returns the IDs of the spares that go first when a place is free, best first, at most n. It is for a host that
// is no spare itself.
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

// JoinQueue returns the IDs of the hosts that are ready to vote, in the order in which they go when a place is free or
// a voter is replaced. It is the same on every host that observes the same records, except while one has reported a
// voter dead or unhealthy and another has not yet: the lock decides then.
func JoinQueue(v View) []string {
	var out []string
	for _, h := range candidates(v, RoleVoter, selfReady(v)) {
		out = append(out, h.ID)
	}
	return out
}

// askedEarlier orders hosts by the age of their request to be taken down. It decides nothing but this order, so the
// hosts' wall clocks are good enough.
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

// distance returns how far away a member is, in steps that double from 2 ms on: differences within one room are noise.
func distance(m Member) int { return bits.Len64(uint64(known(m.RTT) / (2 * time.Millisecond))) }

// leadershipRank ranks a host last whose health state rules out leading.
func leadershipRank(h Host) int {
	if blocks(h.Health, h.Ungated, health.Leadership) {
		return 1
	}
	return 0
}

// patience is how long a host at that position of a queue waits for those before it: a first host that does not act,
// for a reason unknown to it, does not block the others forever.
func patience(v View, position int) time.Duration {
	return max(v.Limits.Settle, v.Limits.Cooldown) + time.Duration(position)*ttlsPerPosition*v.Limits.LockTTL
}

// turnShare is for how many lock TTLs the others wait for each host in the queue.
const ttlsPerPosition = 2

// NextInRollout returns the IDs of the hosts without a member that are taken down next, in order, at most n; waiting
// are those of a rollout. Members observe closely in any case.
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

// known ranks an unknown figure behind all known ones.
func known(figure time.Duration) time.Duration {
	if figure == 0 {
		return Never
	}
	return figure
}

func roleRank(r Role) int {
	if r == RoleSpare {
		return 1
	}
	return 0
}

// voterTurn returns this host's position among the live voters, by member ID: work that any voter may do is tried by
// the first, then after one lock TTL by the next. It is negative for a host that is no live voter.
func voterPosition(v View) int {
	turn := 0
	for _, m := range v.Cluster.Members { // by ID
		if m.Learner || !m.Live {
			continue
		}
		if m.PeerURL == v.Self.PeerURL {
			return turn
		}
		turn++
	}
	return -1
}
