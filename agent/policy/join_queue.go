// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"cmp"
	"math/bits"
	"slices"
	"time"
)

// QueueLength is the number of spares that the queue names: the next to join, one that makes the number of voters odd
// again if necessary, and one in reserve.
const QueueLength = 3

// DownLength is the number of hosts that the queue names to be taken down: the next one, and one in reserve.
const DownLength = 2

// Queue names hosts that observe the cluster in every round even if they have no member, because they may have to act.
// Other hosts without a member usually rest: see View.Resting.
type Queue struct {
	Hosts int      // the rounded-up number of hosts: see SizeClass and noteQueue
	Next  []string // IDs of the next spares to join, best first
	Down  []string // IDs of the next hosts to be taken down, in order
}

// QueueNote states whether this host maintains the queue, and what it writes to etcd.
type QueueNote struct {
	Keeps bool // this host maintains the queue
	News  bool // Queue differs from the queue in etcd
	Queue Queue
}

// noteQueue returns the new queue on the host that maintains it: the first voter whose agent is present. Two hosts may
// maintain it without harm, because the queue only names the hosts that read in every round. While a voter does not
// answer, the named hosts report that they are not ready. If they were replaced in the queue then, the queue would name
// every host of the fleet, one after another.
func noteQueue(v View, role Role) QueueNote {
	if !v.HostsFresh || v.foreign() || !keepsQueue(v, role) {
		return QueueNote{}
	}
	q := Queue{Hosts: SizeClass(len(v.Hosts)), Next: Next(v, QueueLength)}
	var waiting []string
	if v.Rollout != nil && v.Rollout.Runs {
		waiting = v.Rollout.Waiting
	}
	q.Down = NextInRollout(v, waiting, DownLength)
	old := v.Queue
	if old == nil {
		return QueueNote{Keeps: true, News: true, Queue: q}
	}
	if n := len(v.Hosts); n <= old.Hosts && n > old.Hosts/4 {
		q.Hosts = old.Hosts // do not rewrite the queue whenever a host comes or goes
	}
	if voters, live := v.Cluster.Counts(); live < voters {
		q.Next = old.Next
	}
	same := q.Hosts == old.Hosts && slices.Equal(q.Next, old.Next) && slices.Equal(q.Down, old.Down)
	return QueueNote{Keeps: true, News: !same, Queue: q}
}

// keepsQueue reports whether this host is the first, by ID, of the voters' hosts whose agents are present. It is false
// while this host has an identity conflict.
func keepsQueue(v View, role Role) bool {
	if role != RoleVoter || v.Self.Conflict != "" {
		return false
	}
	i := slices.IndexFunc(v.Hosts, func(h Host) bool { return h.Role == RoleVoter }) // v.Hosts is sorted by ID
	return i >= 0 && v.Hosts[i].ID == v.Self.ID
}

// SizeClass rounds a number of hosts up to a power of two.
func SizeClass(n int) int { return 1 << bits.Len(uint(max(n, 1)-1)) }

// candidates returns the hosts that are ready for a role, best first. It ranks by published records, so that every host
// computes the same order. For this host, it uses selfReady instead of the published readiness.
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
		return !ready || !h.Manage || !fits || v.isRetired(h.ID) || h.Learner != (target == RoleLearner) ||
			target == RoleStandby && h.NoStandbys
	})
	kept := v.keptPlaces()
	unnamed := func(h Host) int {
		if slices.ContainsFunc(kept, func(k keptPlace) bool { return k.Host == h.ID }) {
			return 0
		}
		return 1
	}
	slices.SortFunc(list, func(a, b Host) int {
		return cmp.Or(
			cmp.Compare(unnamed(a), unnamed(b)),             // first, the hosts that an operator has named
			cmp.Compare(roleRank(a.Role), roleRank(b.Role)), // then standbys and joining hosts, before spares
			cmp.Compare(voting[a.Domain], voting[b.Domain]), // then the failure domain with the fewest voters
			cmp.Compare(known(a.P99), known(b.P99)),         // then the faster disk
			cmp.Compare(a.ID, b.ID),
		)
	})
	return list
}

// isOutgoing reports whether a host's voter will be replaced. It uses the last observations, so that a resting host
// computes the same order as all others.
func (v View) isOutgoing(h Host) bool {
	for m := range v.Cluster.voters() {
		if m.PeerURL != h.PeerURL {
			continue
		}
		dead, _ := v.reportedDead(m)
		s, healthy := v.reportedUnhealthy(m)
		return v.retires(m) || v.Op.replacesMember(m) ||
			v.Limits.DeadGrace > 0 && !m.Live && dead >= v.Limits.DeadGrace ||
			v.Limits.UnhealthyGrace > 0 && healthy == "" && s.GraceLeft == 0
	}
	return false
}

// Next returns the IDs of at most n spares that join next, best first. It must not be called on a spare, because it
// counts this host as not ready.
func Next(v View, n int) []string {
	voters, _ := v.Cluster.Counts()
	target := RoleVoter
	if voters-v.retiring() >= v.Target.Voters && v.Cluster.learning() < v.Target.Standbys {
		target = RoleStandby
	}
	list := candidates(v, target, false)
	switch missing := target == RoleVoter && voters-v.retiring() < v.Target.Voters; {
	case missing: // a permanent learner joins last
	case target == RoleStandby && len(list) > 0:
	default:
		list = append(candidates(v, RoleLearner, false), list...)
	}
	var out []string
	for _, h := range list {
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

// askedEarlier orders hosts by the age of their request to be taken down. The order depends on the hosts' wall clocks.
func askedEarlier(a, b Host) int {
	return cmp.Or(cmp.Compare(a.AskedAt, b.AskedAt), cmp.Compare(a.ID, b.ID))
}

// patience returns how long a host at a position of the queue waits for the hosts before it. A host that counts as
// ready but does not act must not block the others forever.
func patience(v View, position int) time.Duration {
	return max(v.Limits.Settle, v.Limits.Cooldown) + time.Duration(position)*ttlsPerPosition*v.Limits.LockTTL
}

// ttlsPerPosition is the number of lock TTLs that a host waits for each host before it in the queue.
const ttlsPerPosition = 2

// NextInRollout returns the IDs of at most n hosts that are taken down next, in order: queued hosts without a member,
// then the next host of the rollout, even if it has a member. waiting lists the hosts that the rollout has not reached.
// Queued members are left out, because they read in every round anyway.
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

// known returns the value for a comparison, in which an unknown value, which is 0, counts as the largest.
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

// voterPosition returns this host's position among the live voters, by member ID, or -1 if its member is not a live
// voter. For work that any voter may do, the first voter tries first, and each further one a lock TTL later.
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

// QuietRounds is the number of rounds of the control loop that share one status request to the members while the
// cluster is quiet. A host still reads the records in each round, and asks the members at once if anything has changed.
const QuietRounds = 2

func lowerRanked(v View) (string, bool) {
	target, place := joinTarget(v)
	if !place {
		return "", false
	}
	if v.Resting && !v.HostsFresh {
		return "other hosts go first", true
	}
	if k, kept := v.keptFrom(v.Self.ID); kept { // a standby would block the named host's join
		return v.keptText(k), true
	}
	list := candidates(v, target, selfReady(v))
	position := slices.IndexFunc(list, func(h Host) bool { return h.ID == v.Self.ID })
	if position <= 0 || v.PlaceFreeFor >= patience(v, position) {
		return "", false
	}
	return list[0].Name + " goes first", true
}
