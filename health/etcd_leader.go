// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package health

import "time"

// EtcdNoLeader is the code of the check of whether the local member has a leader.
const EtcdNoLeader Code = "ETCD_NO_LEADER"

// noLeaderFor is far longer than an election takes.
const noLeaderFor = 30 * time.Second

// declareLeaderless declares the check of a member that is without a leader for longer than an election takes.
func declareLeaderless() declaration {
	return declaration{
		Check: Check{
			Name: "etcd-leaderless", Component: Etcd, Gates: Nothing, Source: "etcd_server_has_leader" + etcdSource,
			Limits: []Limit{{Of: "leaders that the member knows", Unit: "at a time", Enter: 1, Leave: 1, Below: true}},
			Problems: []Problem{
				{
					EtcdNoLeader, Etcd, Warm, "The member here has no leader.",
					"It answers nobody who wants to write or to read what all have agreed on. Either no quorum is " +
						"up, or this member reaches none of it.",
					"look at 'quorumctl status' for the other members and at 'quorumctl network' for the way to them",
				},
			},
			Runbook: findingRunbook,
		},
		start: OK,
		gather: func(at *track) evidence {
			return &listed{
				spell: spell{code: EtcdNoLeader, track: at, badFor: noLeaderFor, wellFor: time.Minute},
				sick:  "the member knows no leader", well: "the member knows a leader",
				missing: func(in Input) string { return in.Etcd.HasLeader.absent() },
				look: func(in Input, _ bool) []string {
					if in.Etcd.HasLeader.Value > 0 {
						return nil
					}
					return []string{"the member knows no leader, limit " + show(noLeaderFor)}
				},
			}
		},
	}
}
