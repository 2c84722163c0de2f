// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package policy

// RoundNeeds is what a host has observed before a round that decides whether it asks the members in that round. A fact
// that is unknown is false.
type RoundNeeds struct {
	Bootstraps   bool // it has a request to create a cluster
	Removes      bool // it has a request to remove a member
	HoldsLock    bool
	StepRunning  bool // a step of its own is running
	StateUnknown bool // the cluster state is unknown
	LookedBefore bool // it looked in every round so far
	Listed       bool // it is a member
	InQueue      bool // the queue in etcd names it
	GoesFirst    bool // it has observed itself that no host goes before it
	OwnOperation bool // the operation in flight is its own
}

// LooksEveryRound reports whether a host may have to act, and so must ask the members in every round. While the cluster
// state is unknown, it keeps its previous pace.
func LooksEveryRound(a RoundNeeds) bool {
	switch {
	case a.Bootstraps, a.Removes, a.HoldsLock, a.StepRunning:
		return true
	case a.StateUnknown:
		return a.LookedBefore
	}
	return a.Listed || a.InQueue || a.GoesFirst || a.OwnOperation
}

// goesFirst reports whether a decision has found that no other host joins before this one. It matters if no host
// maintains the queue in etcd, or if the queue is wrong.
func goesFirst(v View, d Decision) bool {
	if !v.Cluster.Reachable || v.Self.Mode != Manage || d.Role != RoleSpare || d.Waiting != "" ||
		(v.Resting && !v.HostsFresh) {
		return false
	}
	for _, reason := range d.Reasons {
		if reason.Code == TargetMet || reason.Code == NotMyTurn {
			return false
		}
	}
	return true
}
