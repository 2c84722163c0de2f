// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"cmp"
	"slices"

	"github.com/quorumd/quorumd/health"
)

// SnapshotSource returns the member to take a snapshot from: the standby, which costs no voter any load; otherwise the
// healthiest follower; the leader only if it is the only voter. If there is none, it returns the reason.
func SnapshotSource(v View) (Member, string) {
	return snapshotSource(v, func(Member, Host) bool { return true })
}

func snapshotSource(v View, may func(Member, Host) bool) (Member, string) {
	if !v.Cluster.Reachable || v.Cluster.Foreign() {
		return Member{}, "the cluster cannot be reached from here"
	}
	voters, _ := v.Cluster.Counts()
	var fit []Member
	for _, m := range v.Cluster.Members {
		behind := m.Learner && (!m.Standby || !m.LagKnown || m.Lag > v.Limits.PromoteLag)
		if h, _ := v.hostOf(m); m.Live && !behind && (!m.Leader || voters == 1) && may(m, h) {
			fit = append(fit, m)
		}
	}
	if len(fit) == 0 {
		return Member{}, "no standby or follower answers and is up to date, and the leader takes no snapshots"
	}
	return slices.MinFunc(fit, func(a, b Member) int {
		ah, _ := v.hostOf(a)
		bh, _ := v.hostOf(b)
		return cmp.Or(
			cmp.Compare(burden(a, ah), burden(b, bh)),
			cmp.Compare(known(ah.P99), known(bh.P99)),
			cmp.Compare(a.ID, b.ID),
		)
	}), ""
}

// burden ranks members by how much reading the whole database from one costs the cluster.
func burden(m Member, h Host) int {
	switch {
	case m.Learner:
		return 0
	case m.Leader:
		return 3
	case blocks(h.Health, h.Ungated, health.Leadership):
		return 2
	}
	return 1
}
