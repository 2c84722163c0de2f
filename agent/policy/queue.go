// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"math/bits"
	"slices"
)

// QueueLength is how many spares the queue names: the next to join, one that makes the number of voters odd again if
// necessary, and one in reserve.
const QueueLength = 3

// DownLength is how many hosts without a member that wait to be taken down the queue names: the next, and one in
// reserve.
const DownLength = 2

// Queue names the hosts without a member that observe the cluster in every round, since they may have to act. The
// others rest.
type Queue struct {
	Hosts int      // how many hosts are present, rounded up by SizeClass
	Next  []string // IDs of the next spares to join, best first
	Down  []string // IDs of the next hosts to be taken down, in order
}

// QueueNote is what this host writes to etcd about the queue.
type QueueNote struct {
	Keeps bool // this host keeps the queue
	News  bool // Queue differs from the queue in etcd
	Queue Queue
}

// noteQueue returns the new queue on the host that keeps it: the first voter whose agent is present. Two hosts may keep
// it without harm, since the queue only names the hosts that read in every round. While a voter does not answer, no
// host can join, and the named hosts report that they are not ready. Replacing them in the queue would then call the
// whole fleet, one after another.
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
		q.Hosts = old.Hosts // do not rewrite the queue with every host that comes or goes
	}
	if voters, live := v.Cluster.Counts(); live < voters {
		q.Next = old.Next
	}
	same := q.Hosts == old.Hosts && slices.Equal(q.Next, old.Next) && slices.Equal(q.Down, old.Down)
	return QueueNote{Keeps: true, News: !same, Queue: q}
}

// keepsQueue reports whether this is the first voter, by host ID, whose agent is present.
func keepsQueue(v View, role Role) bool {
	if role != RoleVoter || v.Self.Conflict != "" {
		return false
	}
	i := slices.IndexFunc(v.Hosts, func(h Host) bool { return h.Role == RoleVoter }) // by ID
	return i >= 0 && v.Hosts[i].ID == v.Self.ID
}

// SizeClass rounds a number of hosts up to a power of two.
func SizeClass(n int) int { return 1 << bits.Len(uint(max(n, 1)-1)) }
