// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"cmp"
	"slices"
	"time"
)

// Rollout takes hosts down for the same work, one after another.
type Rollout struct {
	ID              string
	Work            Work     // possibly unknown to this agent
	Runs            bool     // it is neither paused nor stopped, aborted or done
	Waiting         []string // the hosts that have not had their turn
	Due             bool     // this host has not had its turn since the last resume, according to its disk
	Upgrade         string   // the etcd version to reach; empty if it is for something else
	WithoutSnapshot bool     // an operator waived the snapshot
	Began           time.Duration
}

// CountedInRollout reports whether a finished request counts as its host's turn in a rollout, given how often the
// rollout had been resumed then and has been now: each resume allows every waiting host another turn. However the
// request ended, it counts, since even a released operation may have taken the host down.
func CountedInRollout(resumedThen, resumed int) bool { return resumedThen >= resumed }

// RolloutNext returns the ID of the host that a rollout takes down next: unhealthy hosts first, then hosts without a
// voter, then followers, and the leader last. Absent hosts are skipped. It returns an empty string if no host can be
// next, or if one of them has a request already.
func RolloutNext(v View, waiting []string) string {
	var next Host
	found := false
	for _, h := range v.Hosts {
		if !slices.Contains(waiting, h.ID) || !h.Manage {
			continue
		}
		if h.Wants != "" {
			return "" // one at a time, also in the queue
		}
		if !found || cmp.Or(cmp.Compare(v.rolloutRank(h), v.rolloutRank(next)), cmp.Compare(h.Name, next.Name),
			cmp.Compare(h.ID, next.ID)) < 0 {
			next, found = h, true
		}
	}
	return next.ID
}

func (v View) rolloutRank(h Host) int {
	if Unhealthy(h.Health) {
		return 0
	}
	i := slices.IndexFunc(v.Cluster.Members, func(m Member) bool { return m.PeerURL == h.PeerURL })
	switch {
	case i < 0:
		return 1
	case v.Cluster.Members[i].Learner:
		return 2
	case !v.Cluster.Members[i].Leader:
		return 3
	}
	return 4
}
