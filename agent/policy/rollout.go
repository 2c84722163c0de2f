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
	Work    Work     // one that this agent may not know
	Runs    bool     // it is neither paused nor stopped, aborted or done
	Waiting []string // the hosts that wait for their turn
	Due     bool     // by its own disk this host has not had its turn since the rollout was last let go on
	Upgrade string   // the version of etcd that shall run afterwards; empty when it is for something else
	Bare    bool     // a person wants no snapshot before it
	Began   time.Duration
}

// CountedInRollout tells whether a request of a rollout that has ended was its host's turn, where a person has let the
// rollout go on so often then, and so often by now: each time everybody has a turn again. However it ended, it was: one
// whose operation a person has released may have had the host down.
func CountedInRollout(resumedThen, resumed int) bool { return resumedThen >= resumed }

// RolloutNext gives the host of a rollout that is taken down next, among those that wait: first the
// sick ones, then those without a vote, then voters that follow, and the leader last. Hosts that are
// not present are passed over. It is empty when none can be next, or when one of them was asked
// already.
func RolloutNext(v View, waiting []string) string {
	var next Host
	found := false
	for _, h := range v.Hosts {
		if !slices.Contains(waiting, h.ID) || !h.Manage {
			continue
		}
		if h.Wants != "" {
			return "" // one at a time, also in the line
		}
		if !found || cmp.Or(cmp.Compare(v.rolloutRank(h), v.rolloutRank(next)), cmp.Compare(h.Name, next.Name),
			cmp.Compare(h.ID, next.ID)) < 0 {
			next, found = h, true
		}
	}
	return next.ID
}

func (v View) rolloutRank(h Host) int {
	if sick(h.Health) {
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
