// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"testing"

	"github.com/quorumd/quorumd/agent/control"
	"github.com/quorumd/quorumd/agent/policy"
)

func TestExplainAnotherHost(t *testing.T) {
	t.Parallel()
	d, age := scene(t, "joining"), 4.0
	d.status.Hosts = []control.HostRecord{
		{ID: "id-1", Name: "n1", Role: policy.RoleVoter, Health: "OK", AgeSeconds: &age},
		{ID: "id-4", Name: "n4", Role: policy.RoleStandby, Health: "OK", Rank: 1, AgeSeconds: &age},
		{ID: "id-5", Name: "n5", Role: policy.RoleSpare, Health: "WARM", Rank: 2, AgeSeconds: &age},
		{ID: "id-6", Name: "n6", Role: policy.RoleSpare, Health: "SLOW", Waiting: "HEALTH_BAD", AgeSeconds: &age},
	}
	socket, _ := serve(t, d)
	golden(t, "explain-host.golden", transcript(t, socket,
		"explain n1", "explain n4", "explain id-5", "explain n6", "explain n7", "explain n5 -o json"))
}

func TestTheDomainWhoseLossCostsTheQuorumIsShown(t *testing.T) {
	t.Parallel()
	d := scene(t, "steady")
	d.status.Cluster.DomainLoss = "loss of failure domain r1 (n1, n2) costs the quorum: it has 2 of the 3 live " +
		"voters, and the quorum is 2 of 3"
	socket, _ := serve(t, d)
	golden(t, "explain-domain.golden", transcript(t, socket, "explain", "status", "explain -o json"))
}
