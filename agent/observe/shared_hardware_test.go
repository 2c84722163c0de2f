// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"slices"
	"testing"

	"github.com/quorumd/quorumd/agent/cluster"
	"github.com/quorumd/quorumd/agent/config"
	"github.com/quorumd/quorumd/agent/record"
	"github.com/quorumd/quorumd/agent/round"
	"github.com/quorumd/quorumd/health"
)

func TestOnlyOtherHostsVotersAreCompared(t *testing.T) {
	t.Parallel()
	r := &round.Round{ClusterState: round.ClusterState{
		Listed: true, HostsAt: 1,
		Membership: cluster.Membership{Members: []cluster.Member{{ID: 1}, {ID: 2}, {ID: 3, Learner: true}}},
		Hosts: []record.Host{
			{ID: "h1", Name: "n1", MemberID: 1, BootID: "b1"},
			{ID: "h2", Name: "n2", MemberID: 2, BootID: "b1", Disks: slices.Repeat([]string{"d"}, 32)},
			{ID: "h3", Name: "n3", MemberID: 3, BootID: "b1"}, // a learner
			{ID: "h4", Name: "n4", BootID: "b1"},              // a spare
			{ID: "h5", Name: "n5", MemberID: 2, BootID: "b1"}, // claims n2's member
			{ID: "h6", Name: "n6", MemberID: 9, BootID: "b1"}, // claims a member that does not exist
		},
	}}
	got := sharedReading(r, config.Host{ID: "h1"}, "b1")
	if len(got.Voters) != 1 || got.Voters[0].Host != "n2" || !got.Voters[0].SameMachine ||
		len(got.Voters[0].Disks) != health.MaxDisks {
		t.Errorf("%+v", got)
	}
	if got := sharedReading(r, config.Host{ID: "h1"}, "b2"); got.Voters[0].SameMachine {
		t.Error("a host with a different boot ID counts as the same machine")
	}
	if got := sharedReading(r, config.Host{ID: "h1", AllowSharedHardware: true}, "b1"); got.Known || got.Absent == "" {
		t.Errorf("%+v", got)
	}
	for _, unread := range []round.ClusterState{{HostsAt: 1}, {Listed: true}} {
		if got := sharedReading(&round.Round{ClusterState: unread}, config.Host{}, ""); got.Known || got.Absent == "" {
			t.Errorf("%+v", got)
		}
	}
}
