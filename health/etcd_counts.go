// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package health

import (
	"fmt"
	"time"
)

// The codes of the checks of the local etcd's counters.
const (
	EtcdLeaderChanges  Code = "ETCD_LEADER_CHANGES"
	EtcdProposalsFail  Code = "ETCD_PROPOSALS_FAIL"
	EtcdAppliesSlow    Code = "ETCD_APPLIES_SLOW"
	EtcdHeartbeatsLate Code = "ETCD_HEARTBEATS_LATE"
	etcdCountsSpan          = 15 * time.Minute
	leaderChanges           = 3 // as etcd's own alerts
	proposalsFail           = 5
	heartbeatsLate          = 5
	appliesSlow             = 50 // an expensive read counts too; a disk that is too slow causes hundreds
	appliesSlowLeave        = 10
)

// declareLeaders declares the check of how often the leader changes.
func declareLeaders() declaration {
	return countsOfEtcd(Check{
		Name: "etcd-leaders", Gates: Nothing, Behind: []string{fsyncName, "cpu"},
		Source: "etcd_server_leader_changes_seen_total" + etcdSource,
	}, Problem{
		Code: EtcdLeaderChanges, Title: "The cluster changes its leader too often.",
		Meaning: "Each election blocks writes for about a second. The usual cause is a leader whose disk, CPU or " +
			"network delays its heartbeats.",
		Remedy: "find the leader with 'quorumctl status'; run 'quorumctl health' on the hosts that have led and " +
			"check their disks, CPUs and the network between them",
	}, etcdCountsSpan, Limit{Of: "leader changes", Enter: leaderChanges, Leave: 1},
		"%.0f leader changes in the last %s",
		func(in Input) Figure { return in.Etcd.LeaderChanges })
}

// declareProposals declares the check of failed proposals.
func declareProposals() declaration {
	return countsOfEtcd(Check{
		Name: "etcd-proposals", Gates: Nothing, Behind: []string{fsyncName, "cpu"},
		Source: "etcd_server_proposals_failed_total" + etcdSource,
	}, Problem{
		Code: EtcdProposalsFail, Title: "Proposals are failing.",
		Meaning: "Writes were not committed: there was no leader, no quorum was reachable, or the client timed out " +
			"first. Their clients received an error.",
		Remedy: "check 'quorumctl status' for members that are down, and 'quorumctl health' on each host",
	}, etcdCountsSpan, Limit{Of: "failed proposals", Enter: proposalsFail, Leave: 0},
		"%.0f proposals failed in the last %s",
		func(in Input) Figure { return in.Etcd.ProposalsFailed })
}

// declareApplies declares the check of requests that this member applies slowly.
func declareApplies() declaration {
	return countsOfEtcd(Check{
		Name: "etcd-applies", Gates: Nothing, Behind: []string{fsyncName, "cpu"},
		Source: "etcd_server_slow_apply_total" + etcdSource,
	}, Problem{
		Code: EtcdAppliesSlow, Title: "etcd applies many requests slowly.",
		Meaning: "Each of these took over 100 ms on this member. The cause is a slow disk, CPU starvation, or " +
			"clients that read very many keys at once.",
		Remedy: "check 'journalctl -u etcd -g \"took too long\"' for the requests; if they read whole ranges, make " +
			"their clients paginate",
	}, etcdCountsSpan, Limit{Of: "requests that took over 100 ms", Enter: appliesSlow, Leave: appliesSlowLeave},
		"%.0f requests took over 100 ms in the last %s",
		func(in Input) Figure { return in.Etcd.SlowApplies })
}

// declareHeartbeats declares the check of heartbeats that a leader sends late.
func declareHeartbeats() declaration {
	return countsOfEtcd(Check{
		Name: "etcd-heartbeats", Gates: Nothing, Behind: []string{fsyncName, "cpu"},
		Source: "etcd_server_heartbeat_send_failures_total" + etcdSource,
	}, Problem{
		Code: EtcdHeartbeatsLate, Title: "The leader sends its heartbeats late.",
		Meaning: "This member leads and is too slow to send heartbeats in time. Followers that miss ten of them " +
			"elect another leader.",
		Remedy: "check the disk with 'quorumctl health' and the CPU with 'vmstat 1'; move other workloads off this " +
			"host",
	}, etcdCountsSpan, Limit{Of: "late heartbeats", Enter: heartbeatsLate, Leave: 0},
		"%.0f heartbeats were sent late in the last %s",
		func(in Input) Figure { return in.Etcd.HeartbeatFailures })
}

// countsOfEtcd declares a check that advises if a counter of the local etcd grows too fast. The count restarts with
// etcd. words is a format for the number and the span.
func countsOfEtcd(c Check, p Problem, span time.Duration, limit Limit, words string,
	of func(Input) Figure,
) declaration {
	limit.Unit = "in " + show(span)
	p.Component, p.State = Etcd, Warm
	c.Component, c.Limits, c.Problems, c.Runbook = Etcd, []Limit{limit}, []Problem{p}, findingRunbook
	return declaration{
		Check: c, start: OK,
		gather: func(at *track) evidence {
			return &counted{
				code: p.Code, limit: limit, span: span, track: at, of: of,
				words: func(n float64, l Limit) string {
					return fmt.Sprintf(words+", limit %.0f", n, show(span), l.Enter)
				},
			}
		},
	}
}
