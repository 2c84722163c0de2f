// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"strconv"
	"testing"
	"time"

	"github.com/quorumd/quorumd/agent/control"
	"github.com/quorumd/quorumd/agent/record"
)

// In this test, n3 cannot reach n1, large packets are lost between n1 and n2, and the agent of n4 does not probe. Of
// two spares, one reaches all members.
func TestNetworkShowsConnectivityBetweenHosts(t *testing.T) {
	t.Parallel()
	d := scene(t, "steady")
	ids := map[string]string{}
	for _, h := range d.status.Hosts {
		ids[h.Name] = h.MemberID
	}
	see := func(name string, peer, client record.PortState, rtt float64) record.Reachability {
		return record.Reachability{MemberID: memberID(t, ids[name]), Peer: peer, Client: client, RTTSeconds: rtt}
	}
	hosts := d.status.Hosts
	hosts[0].Sees = []record.Reachability{
		see("n2", "large-lost", "large-lost", 0.00025), see("n3", "answers", "answers", 0.0005),
		see("n4", "refused", "refused", 0),
	}
	hosts[1].Sees = []record.Reachability{
		see("n1", "large-lost", "answers", 0.00025), see("n3", "answers", "answers", 0.0005),
		see("n4", "", "silent", 0),
	}
	hosts[2].Sees = []record.Reachability{
		see("n1", "unreachable", "silent", 0.001), see("n2", "answers", "refused", 0.0005),
		see("n4", "answers", "answers", 0.128),
	}
	spare := func(name string, all ...record.Reachability) {
		d.status.Hosts = append(d.status.Hosts, control.HostRecord{ID: name, Name: name, Role: "spare", Sees: all})
	}
	spare("s1", see("n1", "answers", "answers", 0.001), see("n2", "answers", "answers", 0.001),
		see("n3", "answers", "answers", 0.001), see("n4", "answers", "answers", 0.001))
	spare("s2", see("n1", "unreachable", "unreachable", 0))
	d.status.Health.Findings = []control.Finding{
		{Code: "DISK_SPACE_LOW", Component: "disk", State: "WARM", Text: "not of the network", Since: d.status.Time},
		{
			Code: "NETWORK_ONE_WAY", Component: "network", State: "WARM",
			Text:   "n3 does not reach n1, and n1 does reach n3",
			Remedy: "look at the rules of the firewalls between them", Since: d.status.Time.Add(-time.Minute),
		},
	}
	socket, _ := serve(t, d)
	empty, _ := serve(t, scene(t, "starting"))
	young, _ := serve(t, scene(t, "steady"))
	got := transcript(t, socket, "network", "network -o wide", "network -o json")
	got = append(got, transcript(t, empty, "network")...)
	golden(t, "network.golden", append(got, transcript(t, young, "network")...))
}

// memberID parses a hexadecimal member ID.
func memberID(t *testing.T, id string) (n record.MemberID) {
	t.Helper()
	if err := n.UnmarshalJSON([]byte(strconv.Quote(id))); err != nil {
		t.Fatal(err)
	}
	return n
}
