// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package health

import (
	"time"
)

// The codes of the checks of the local etcd's counters.
const (
	EtcdLeaderChanges  Code = "ETCD_LEADER_CHANGES"
	EtcdProposalsFail  Code = "ETCD_PROPOSALS_FAIL"
	EtcdAppliesSlow    Code = "ETCD_APPLIES_SLOW"
	EtcdHeartbeatsLate Code = "ETCD_HEARTBEATS_LATE"
)

const (
	etcdCountsSpan   = 15 * time.Minute
	leaderChanges    = 3 // limit of etcd's own alerts
	proposalsFail    = 5
	heartbeatsLate   = 5
	appliesSlow      = 50 // expensive reads count, too; a disk that is too slow causes hundreds
	appliesSlowLeave = 10
)

// checkLeaders is the check of how often the leader changes.
var checkLeaders = advice{
	name: "etcd-leaders", component: Etcd, behind: []string{fsyncName, "cpu"},
	source: "etcd_server_leader_changes_seen_total" + etcdSource,
	limit:  Limit{Of: "leader changes", Unit: "in 15 min", Enter: leaderChanges, Leave: 1},
	code:   EtcdLeaderChanges,
	title:  "The cluster changes its leader too often.",
	meaning: "Each election blocks writes for about a second. The usual cause is a leader whose disk, CPU or " +
		"network delays its heartbeats.",
	remedy: "find the leader with 'quorumctl status'; run 'quorumctl health' on the hosts that have led and " +
		"check their disks, CPUs and the network between them",
	measure: grows(etcdCountsSpan, func(in Input) Figure { return in.Etcd.LeaderChanges },
		withLimit("%.0f leader changes in the last 15 min, limit %.0f")),
}

// checkProposals is the check of failed proposals.
var checkProposals = advice{
	name: "etcd-proposals", component: Etcd, behind: []string{fsyncName, "cpu"},
	source: "etcd_server_proposals_failed_total" + etcdSource,
	limit:  Limit{Of: "failed proposals", Unit: "in 15 min", Enter: proposalsFail},
	code:   EtcdProposalsFail,
	title:  "Proposals are failing.",
	meaning: "Writes were not committed: there was no leader, no quorum was reachable, or the client timed out " +
		"first. Their clients received an error.",
	remedy: "check 'quorumctl status' for members that are down, and 'quorumctl health' on each host",
	measure: grows(etcdCountsSpan, func(in Input) Figure { return in.Etcd.ProposalsFailed },
		withLimit("%.0f proposals failed in the last 15 min, limit %.0f")),
}

// checkApplies is the check of requests that this member applies slowly.
var checkApplies = advice{
	name: "etcd-applies", component: Etcd, behind: []string{fsyncName, "cpu"},
	source: "etcd_server_slow_apply_total" + etcdSource,
	limit:  Limit{Of: "requests that took over 100 ms", Unit: "in 15 min", Enter: appliesSlow, Leave: appliesSlowLeave},
	code:   EtcdAppliesSlow,
	title:  "etcd applies many requests slowly.",
	meaning: "Each of these took over 100 ms on this member. The cause is a slow disk, CPU starvation, or " +
		"clients that read very many keys at once.",
	remedy: "check 'journalctl -u etcd -g \"took too long\"' for the requests; if they read whole ranges, make " +
		"their clients paginate",
	measure: grows(etcdCountsSpan, func(in Input) Figure { return in.Etcd.SlowApplies },
		withLimit("%.0f requests took over 100 ms in the last 15 min, limit %.0f")),
}

// checkHeartbeats is the check of heartbeats that a leader sends late.
var checkHeartbeats = advice{
	name: "etcd-heartbeats", component: Etcd, behind: []string{fsyncName, "cpu"},
	source: "etcd_server_heartbeat_send_failures_total" + etcdSource,
	limit:  Limit{Of: "late heartbeats", Unit: "in 15 min", Enter: heartbeatsLate},
	code:   EtcdHeartbeatsLate,
	title:  "The leader sends its heartbeats late.",
	meaning: "This member leads and is too slow to send heartbeats in time. Followers that miss ten of them " +
		"elect a new leader.",
	remedy: "check the disk with 'quorumctl health' and the CPU with 'vmstat 1'; move other workloads off this " +
		"host",
	measure: grows(etcdCountsSpan, func(in Input) Figure { return in.Etcd.HeartbeatFailures },
		withLimit("%.0f heartbeats were sent late in the last 15 min, limit %.0f")),
}
