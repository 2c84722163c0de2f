// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package health

import "time"

// EtcdNoLeader is the code of the check of whether the local member has a leader.
const EtcdNoLeader Code = "ETCD_NO_LEADER"

// noLeaderFor is how long a member may have no leader, far longer than an election takes.
const noLeaderFor = 30 * time.Second

// checkLeaderless is the check of a member that has no leader for longer than an election takes.
var checkLeaderless = advice{
	name: "etcd-leaderless", component: Etcd,
	source: "etcd_server_has_leader" + etcdSource,
	limit:  Limit{Of: "leaders of the local member", Enter: 1, Leave: 1, Below: true},
	code:   EtcdNoLeader,
	title:  "The local member has no leader.",
	meaning: "It serves neither writes nor linearizable reads. Either the cluster has lost quorum, or this " +
		"member is cut off from it.",
	remedy: "check the other members with 'quorumctl status' and the connections to them with 'quorumctl " +
		"network'",
	measure: lists(noLeaderFor, time.Minute, listed{
		bad:     "the member has no leader",
		well:    "the member has a leader",
		missing: func(in Input) string { return in.Etcd.HasLeader.absent() },
		look: func(in Input, _ bool) []string {
			if in.Etcd.HasLeader.Value > 0 {
				return nil
			}
			return []string{"the member has no leader, limit " + show(noLeaderFor)}
		},
	}),
}
