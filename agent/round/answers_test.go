// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package round

import (
	"testing"

	"github.com/quorumd/quorumd/agent/cluster"
	"github.com/quorumd/quorumd/agent/datadir"
	"github.com/quorumd/quorumd/agent/hoststate"
)

func TestAHostRecognizesItsRecordedMemberWhileItsDataAreUnknown(t *testing.T) {
	t.Parallel()
	const registered, configured = "http://n1.old:2380", "http://n1.new:2380"
	list := cluster.Membership{ClusterID: 0xc1, Members: []cluster.Member{
		{ID: 1, PeerURLs: []string{registered}}, {ID: 2, PeerURLs: []string{"http://n2:2380"}},
	}}
	read := func(c datadir.Contents) HostState[datadir.Contents] {
		return HostState[datadir.Contents]{OK: true, Value: c}
	}
	for name, c := range map[string]struct {
		data HostState[datadir.Contents]
		want bool
	}{
		"not read yet":      {HostState[datadir.Contents]{}, true},
		"read":              {read(datadir.Contents{MemberID: 1, ClusterID: 0xc1, Mount: "/data"}), true},
		"unreadable":        {read(datadir.Contents{Problem: "permission denied"}), true},
		"not mounted":       {read(datadir.Contents{Empty: true, Mount: "/"}), true},
		"lost":              {read(datadir.Contents{Empty: true, Mount: "/data"}), false},
		"another member's":  {read(datadir.Contents{MemberID: 2, ClusterID: 0xc1, Mount: "/data"}), false},
		"another cluster's": {read(datadir.Contents{MemberID: 1, ClusterID: 0xc2, Mount: "/data"}), false},
	} {
		r := Round{Data: c.data, Noted: hoststate.Noted{Member: 1, Cluster: 0xc1, Mount: "/data"}}
		if m, listed := r.OwnMember(list, configured); listed != c.want || listed && m.ID != 1 {
			t.Errorf("%s: %+v, %t", name, m, listed)
		}
	}
}
