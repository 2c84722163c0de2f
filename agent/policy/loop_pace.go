// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package policy

// RoundNeeds is what a host knows, before it asks the members and has a view, about whether it may have to act. An
// unknown fact is false.
type RoundNeeds struct {
	Bootstraps bool // it has a request to create a cluster
	Removes    bool // it has a request to remove a member
	HoldsLock  bool
	StepRunning      bool // a step of its own is running
	StateUnknown     bool // the cluster state is unknown
	LookedBefore   bool // it looked in every round before
	Listed     bool // it is a member
	InQueue     bool // the queue names it
	GoesFirst  bool // it has observed itself that no host goes before it
	OwnOperation   bool // the operation in flight is its own
}

// LooksEveryRound reports whether a host may have to act, so that it looks in every round: it is a member or becomes
// one, holds the lock, has a request to bootstrap, is called, or has observed itself that it goes first. While the
// cluster state is unknown, it continues as before: in a small fleet it looks in every round anyway.
func LooksEveryRound(a RoundNeeds) bool {
	switch {
	case a.Bootstraps, a.Removes, a.HoldsLock, a.StepRunning:
		return true
	case a.StateUnknown:
		return a.LookedBefore
	}
	return a.Listed || a.InQueue || a.GoesFirst || a.OwnOperation
}

// goesFirst reports whether a decision has found that no other host goes first. It matters if no host keeps the queue,
// or the queue is wrong.
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
