// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package policy

import "slices"

// SelfNote is what this host's disk records about the cluster and this host's part in it. The zero value leaves it as
// it is.
type SelfNote struct {
	ClusterAnswered      bool // that this cluster has answered
	Member   bool // that this host is MemberID of it; with 0, that it is no longer a member
	MemberID uint64
	Standby  uint64 // the learner that is its standby, from now on until this host begins a join itself
	Domains  bool   // the failure domain of each member's host, by the view
	Lost     uint64 // the listed member that this host abandons: its data is gone, and it never starts again
	Mount    string // where the file systems are mounted that hold the member's data
	Clean    bool   // for how long it has been healthy since it was ejected, by the view; 0: it is not
}

// noteSelf returns what to remember about a cluster that has answered in this round. A cluster that this host is
// creating on request did not exist before. A learner is a standby if no operation is in flight.
func noteSelf(v View) SelfNote {
	c, data := v.Cluster, v.Data
	if _, stray := strayDefault(v); !c.Listed || !c.Fresh || stray && c.ID == data.ClusterID {
		return SelfNote{}
	}
	made := v.Bootstrap.Requested && v.Bootstrap.Listed
	n := SelfNote{ClusterAnswered: c.ID != v.Bootstrap.LastCluster && !made, Clean: recordsHealthyPeriod(v), Domains: newDomain(v)}
	if m, _ := v.member(); m.ID != v.Self.LostID && v.givesUp(m) {
		n.Lost = m.ID
	}
	if !c.Reachable || data.State != DataMember || data.ClusterID != c.ID {
		return n
	}
	if !v.foreign() && data.Mount != v.Self.DataMount {
		n.Mount = data.Mount
	}
	m, listed := v.memberByID(data.MemberID)
	known := v.Self.ClusterID == c.ID && v.Self.MemberID == m.ID || v.Self.ClusterID == 0 && !listed
	if !v.foreign() && (!known || m.Live && m.ID == v.Self.LostID) { // it may run again on its old disk
		n.Member, n.MemberID = true, m.ID
	}
	if v.Op == nil && !v.cannotRead(RecordOp) && m.Learner && m.Name != "" && m.ID != v.Self.StandbyID {
		n.Standby = m.ID
	}
	return n
}

// newDomain reports whether a member's host is in another failure domain than this host's disk records.
func newDomain(v View) bool {
	differs := func(m Member) bool { return m.Domain != m.NotedDomain }
	return !v.foreign() && slices.ContainsFunc(v.Cluster.Members, differs)
}
