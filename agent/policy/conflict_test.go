// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package policy

import "testing"

// published returns the view of spare n3 in a cluster of two voters. n3 itself wrote its host record.
func published() View {
	v := spareView()
	v.Hosts[2].Own = true
	for i := range v.Hosts {
		v.Hosts[i].PeerURL = peerPrefix + v.Hosts[i].Name
	}
	return v
}

func TestAHostReportsAnotherHostWithItsIdentity(t *testing.T) {
	t.Parallel()
	const elsewhere = peerPrefix + "elsewhere"
	ownMember := func(v *View) {
		m := voter(3, "n3")
		m.PeerURL = elsewhere
		v.Cluster.Members = append(v.Cluster.Members, m)
		v.Data = Data{State: DataMember, ClusterID: clusterID, MemberID: 3}
	}
	for what, c := range map[string]struct {
		edit func(*View)
		want string
	}{
		"none": {func(*View) {}, ""},
		"a name that no other member has": {
			func(v *View) { v.Cluster.OtherNames, v.Hosts = []string{"prod", "test"}, v.Hosts[2:] },
			"no other member of this etcd cluster uses this host's cluster.name; their hosts use prod or test",
		},
		"a name that another member has": {func(v *View) { v.Cluster.OtherNames = []string{"prod"} }, ""},
		"its record is not written yet":  {func(v *View) { v.Hosts = v.Hosts[:2] }, ""},
		"its record belongs to another host": {
			func(v *View) { v.Hosts[2].Own = false }, "another agent runs with this host's ID, n3",
		},
		"another host with its name": {
			func(v *View) { v.Hosts[1].Name = "n3" }, "host n2 has the same name, n3",
		},
		"another host with its peer URL": {
			func(v *View) { v.Hosts[0].PeerURL = v.Self.PeerURL },
			"host n1 has the same peer URL, " + peerPrefix + "n3",
		},
		"a host with a different ID is a different host": {
			func(v *View) { v.Hosts[0].Name, v.Hosts[0].Own = "n3", true }, "host n1 has the same name, n3",
		},
		"its own member has a different peer URL": {
			ownMember, "etcd.peerURL is " + peerPrefix + "n3, but this host's member is registered with " + elsewhere,
		},
		"the member of its data belongs to another cluster": {
			func(v *View) {
				ownMember(v)
				v.Cluster.Members[2].Name = ""
				v.Data.ClusterID++
			}, "",
		},
		"its data belongs to no member": {
			func(v *View) {
				ownMember(v)
				v.Cluster.Members[2].Name = ""
				v.Data.State = DataUnreadable
			}, "",
		},
		"a member has its name, and a different peer URL": {
			func(v *View) { v.Cluster.Members[1].Name = "n3" },
			"a member with this host's name has a different peer URL, " + peerPrefix + "n2",
		},
		"its member is registered as it is configured": {
			func(v *View) {
				ownMember(v)
				v.Cluster.Members[2].PeerURL = v.Self.PeerURL
			}, "",
		},
	} {
		v := published()
		c.edit(&v)
		if got := Conflict(v); got != c.want {
			t.Errorf("%s: %q, want %q", what, got, c.want)
		}
	}
}
