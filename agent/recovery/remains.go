// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package recovery

import (
	"time"

	"github.com/quorumd/quorumd/agent/policy"
)

// remainsOf converts facts to the policy's type. Ages are relative to at.
func remainsOf(all []Facts, at time.Time) []policy.HostRemains {
	out := make([]policy.HostRemains, 0, len(all))
	for _, f := range all {
		out = append(out, f.remains(at))
	}
	return out
}

func (f Facts) remains(at time.Time) policy.HostRemains {
	return policy.HostRemains{
		HostID: f.HostID, Host: f.Host, Cluster: f.Cluster, PeerURL: f.PeerURL, Age: at.Sub(f.Taken), Quorum: f.Quorum,
		Empty: f.Log.Empty, ClusterID: uint64(f.Log.Cluster), MemberID: uint64(f.Log.Member), Term: f.Log.Term,
		Index: f.Log.Index, Commit: f.Log.Commit, InData: listed(f.Log.Members), LastSeen: listed(f.Members),
		Plans: f.knownPlans(at),
	}
}

func (f Facts) knownPlans(at time.Time) []policy.KnownPlan {
	var out []policy.KnownPlan
	for _, p := range f.Plans {
		out = append(out, policy.KnownPlan{ID: p.ID, Survivor: p.Survivor, GivenUp: p.GivenUp, Age: at.Sub(p.At)})
	}
	return out
}

func listed(all []Member) []policy.ListedMember {
	var out []policy.ListedMember
	for _, m := range all {
		out = append(out, policy.ListedMember{ID: uint64(m.ID), Name: m.Name, PeerURL: m.PeerURL, Learner: m.Learner})
	}
	return out
}
