// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"testing"

	"github.com/quorumd/quorumd/agent/control"
	"github.com/quorumd/quorumd/agent/policy"
	"github.com/quorumd/quorumd/agent/record"
)

// defragPreview returns the hosts and the steps of a defragmentation of all hosts: the database of n1 has enough free
// space, and n2 is skipped.
func defragPreview() ([]control.RolloutHost, []policy.PlanStep) {
	const mib = 1 << 20
	hosts := []policy.RolloutHost{
		{
			ID: "a", Name: "n1", PeerURL: "1",
			Database: policy.Database{Size: 380 * mib, InUse: 161 * mib, Quota: 2048 * mib},
		},
		{
			ID: "b", Name: "n2", PeerURL: "2", Skipped: true,
			Database: policy.Database{Size: 300 * mib, InUse: 288 * mib},
		},
	}
	voters := []policy.Member{{ID: 1, PeerURL: "1", Live: true, Leader: true}, {ID: 2, PeerURL: "2", Live: true}}
	var shown []control.RolloutHost
	for i, h := range hosts {
		state := record.HostWaiting
		if h.Skipped {
			state = record.HostSkipped
		}
		shown = append(shown, control.RolloutHost{
			ID: h.ID, Name: h.Name, State: state, Database: &hosts[i].Database, Text: policy.DefragText(h),
		})
	}
	return shown, policy.DefragPlan(policy.View{Cluster: policy.Cluster{Members: voters}}, hosts)
}

func TestDefragStartsARolloutOfThisHostOfNamedOnesOrOfAll(t *testing.T) {
	t.Parallel()
	socket, _ := serve(t, scene(t, "rollout"))
	golden(t, "defrag.golden", transcript(t, socket, "defrag --all --dry-run --reason 'after a compaction'",
		"defrag --yes --reason 'after a compaction'", "defrag n3 --force --yes --reason 'near its quota'"))
	d := scene(t, "rollout")
	socket, _ = serve(t, d)
	refusesArguments(t, d, socket, "defrag n3 --all --yes --reason x", "defrag n3 --reason x",
		"defrag n3 --yes --reason x --wait=-1s")
}
