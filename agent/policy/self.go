// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package policy

import "slices"

// SelfNote is what this host's disk records about the cluster and this host's part in it. The zero value leaves it as
// it is.
type SelfNote struct {
	ClusterAnswered bool // that this cluster has answered this host
	Member          bool // that this host is the member MemberID of it, or no member if MemberID is 0
	MemberID        uint64
	Standby         uint64 // the learner that is this host's standby, until this host begins a join; 0: as it is
	Domains         bool   // the failure domain of each member's host, from the view
	Lost            uint64 // the listed member to give up, because its data is gone; it never starts again
	Mount           string // the mount points of the file systems with the member's data
	Clean           bool   // for how long this host has been healthy since it was ejected, from the view
}

// noteSelf returns what to record about a cluster that has answered in this round. A cluster that this host is creating
// on request does not count as one that existed before. A learner is recorded as the standby if no operation is in
// flight.
func noteSelf(v View) SelfNote {
	c, data := v.Cluster, v.Data
	if _, stray := strayDefault(v); !c.Listed || !c.Fresh || stray && c.ID == data.ClusterID {
		return SelfNote{}
	}
	made := v.Bootstrap.Requested && v.Bootstrap.Listed
	n := SelfNote{
		ClusterAnswered: c.ID != v.Bootstrap.LastCluster && !made, Clean: recordsHealthyPeriod(v),
		Domains: newDomain(v),
	}
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
	if !v.foreign() && (!known || m.Live && m.ID == v.Self.LostID) { // a member given up may run again on its old disk
		n.Member, n.MemberID = true, m.ID
	}
	if v.Op == nil && !v.cannotRead(RecordOp) && m.Learner && m.Name != "" && m.ID != v.Self.StandbyID {
		n.Standby = m.ID
	}
	return n
}

// newDomain reports whether the failure domain of a member's host differs from the one recorded on this host's disk.
func newDomain(v View) bool {
	differs := func(m Member) bool { return m.Domain != m.NotedDomain }
	return !v.foreign() && slices.ContainsFunc(v.Cluster.Members, differs)
}
