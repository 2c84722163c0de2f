// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package policy

// RoundNeeds is what a host knows, before it asks the members and has a view, about whether it may have to act. An
// unknown fact is false.
type RoundNeeds struct {
	Bootstraps bool // it has a request to create a cluster
	Removes    bool // it has a request to remove a member
	HoldsLock  bool
	Steps      bool // a step of its own is running
	Silent     bool // the cluster state is unknown
	Attended   bool // it looked in every round before
	Listed     bool // it is a member
	Called     bool // the queue names it
	GoesFirst  bool // it has observed itself that no host goes before it
	Operated   bool // the operation in flight is its own
}

// LooksEveryRound tells whether a host may have to act, and looks in every round: it is a member or becomes one, holds
// the lock, was told to make a cluster, is called, or has seen for itself that it goes first. While nobody says how the
// cluster is, it goes on as before: in a small fleet it looks in every round anyway.
func LooksEveryRound(a RoundNeeds) bool {
	switch {
	case a.Bootstraps, a.Removes, a.HoldsLock, a.Steps:
		return true
	case a.Silent:
		return a.Attended
	}
	return a.Listed || a.Called || a.GoesFirst || a.Operated
}

// goesFirst tells whether a decision has found that nobody else goes first. It matters when nobody keeps the queue, or
// keeps it badly.
func goesFirst(v View, d Decision) bool {
	if !v.Cluster.Reachable || v.Self.Mode != Manage || d.Role != RoleSpare || d.Waiting != "" ||
		(v.Resting && !v.Looked) {
		return false
	}
	for _, reason := range d.Reasons {
		if reason.Code == TargetMet || reason.Code == NotMyTurn {
			return false
		}
	}
	return true
}
