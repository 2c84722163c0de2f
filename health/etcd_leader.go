// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package health

import "time"

// EtcdNoLeader is the code of the check of whether the local member has a leader.
const EtcdNoLeader Code = "ETCD_NO_LEADER"

// noLeaderFor is far longer than an election takes.
const noLeaderFor = 30 * time.Second

// declareLeaderless declares the check of a member that has no leader for longer than an election takes.
func declareLeaderless() declaration {
	return declaration{
		Check: Check{
			Name: "etcd-leaderless", Component: Etcd, Gates: Nothing, Source: "etcd_server_has_leader" + etcdSource,
			Limits: []Limit{{Of: "leaders of the member", Unit: "at a time", Enter: 1, Leave: 1, Below: true}},
			Problems: []Problem{
				{
					EtcdNoLeader, Etcd, Warm, "The local member has no leader.",
					"It serves neither writes nor linearizable reads. Either the cluster has lost quorum, or this " +
						"member is cut off from it.",
					"check the other members with 'quorumctl status' and the connections to them with 'quorumctl " +
						"network'",
				},
			},
			Runbook: findingRunbook,
		},
		start: OK,
		gather: func(at *track) evidence {
			return &listed{
				spell: spell{code: EtcdNoLeader, track: at, badFor: noLeaderFor, wellFor: time.Minute},
				bad:   "the member has no leader", well: "the member has a leader",
				missing: func(in Input) string { return in.Etcd.HasLeader.absent() },
				look: func(in Input, _ bool) []string {
					if in.Etcd.HasLeader.Value > 0 {
						return nil
					}
					return []string{"the member has no leader, limit " + show(noLeaderFor)}
				},
			}
		},
	}
}
