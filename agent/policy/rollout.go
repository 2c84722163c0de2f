// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"cmp"
	"slices"
	"time"
)

// Rollout takes one host after another down for the same work.
type Rollout struct {
	ID      string
	Work    Work     // this agent may not know it
	Runs    bool     // it is neither paused nor stopped, aborted or done
	Waiting []string // the hosts that have not had their turn
	Due     bool     // by its own disk this host has not had its turn since the rollout was last resumed
	Upgrade string   // the etcd version to reach; empty if it is for something else
	WithoutSnapshot    bool     // an operator waived the snapshot
	Began   time.Duration
}

// CountedInRollout reports whether a finished request of a rollout was its host's turn, given how often the rollout had
// been resumed then and by now: with each resume every host has a turn again. Any end counts: a released operation may
// have had the host down.
func CountedInRollout(resumedThen, resumed int) bool { return resumedThen >= resumed }

// RolloutNext returns the host of a rollout that is taken down next: first unhealthy hosts, then those without a vote,
// then followers, and the leader last. Hosts that are not present are skipped. It is empty if none can be next, or if
// one of them has a request already.
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
