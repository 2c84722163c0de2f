// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package policy

import "testing"

// In this test, the endpoints belong to a different cluster than this host.
func TestNothingIsDoneAndNothingCountsAsHealthyInAnotherCluster(t *testing.T) {
	t.Parallel()
	elsewhere := func(change func(v *View)) func(v *View) {
		return func(v *View) {
			v.Cluster.ExpectedID = 0xbad
			change(v)
		}
	}
	play(t, spareView, []scene{
		{"a spare", elsewhere(func(*View) {}), StepNone, ClusterIDMismatch},
		{"a voter", elsewhere(func(v *View) { v.Self.PeerURL = peerPrefix + "n1" }), StepNone, ClusterIDMismatch},
		{"a voter whose etcd has failed", elsewhere(func(v *View) {
			v.Self.PeerURL, v.Unit.State = peerPrefix+"n1", UnitFailed
			v.Data = Data{State: DataMember, ClusterID: clusterID, MemberID: 1}
		}), StepNone, ClusterIDMismatch},
		{"an operation is in flight in that cluster", elsewhere(func(v *View) {
			v.Op = &Op{Kind: KindJoin, Host: "n4", HostName: "n4", OrphanedFor: Never}
		}), StepNone, ClusterIDMismatch},
	})
}
