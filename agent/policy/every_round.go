// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"slices"

	"github.com/quorumd/quorumd/agent/record"
	"github.com/quorumd/quorumd/health"
)

// RoundNeeds holds the facts that decide whether a host reads from etcd in every round. An unknown fact is false.
type RoundNeeds struct {
	Bootstraps   bool // this host has a request to create a cluster
	Removes      bool // this host has a request to remove a member
	Transfers    bool // this host has a request to transfer leadership
	HoldsLock    bool
	StepRunning  bool // a step of this host is running
	StateUnknown bool // the cluster state is unknown
	LookedBefore bool // until now, this host has read from etcd in every round
	Listed       bool // this host is a member
	InQueue      bool // the queue in etcd names this host
	GoesFirst    bool // according to this host's observations, no host joins before it
	OwnOperation bool // the operation in flight is this host's
}

// LooksEveryRound reports whether a host may have to act, and so must read from etcd in every round. While the cluster
// state is unknown, the host keeps its previous pace.
func LooksEveryRound(a RoundNeeds) bool {
	switch {
	case a.Bootstraps, a.Removes, a.Transfers, a.HoldsLock, a.StepRunning:
		return true
	case a.StateUnknown:
		return a.LookedBefore
	}
	return a.Listed || a.InQueue || a.GoesFirst || a.OwnOperation
}

// goesFirst reports whether, according to this decision, no other host joins before this one. This matters if no host
// maintains the queue in etcd, or if the queue is wrong.
func goesFirst(v View, d Decision) bool {
	if !v.Cluster.Reachable || v.Self.Mode != Manage || d.Role != RoleSpare || d.Waiting != "" ||
		(v.Resting && !v.HostsFresh) {
		return false
	}
	for _, reason := range d.Reasons {
		if reason.Code == TargetMet || reason.Code == LowerRanked {
			return false
		}
	}
	return true
}

// HoldsMember reports whether this host holds a member, including a learner: the member list includes the host and its
// data is not lost or, while the list is unknown, its data directory is not known to be empty. A doubtful case counts
// as a member, because the probe must not write to a member's disk in bursts.
func HoldsMember(listKnown, listed, lost bool, data DataState) bool {
	if listKnown {
		return listed && !lost
	}
	return data != DataEmpty
}

// MeasuresInBursts reports whether the probe writes as fast as the disk allows: on a host without a member, while its
// qualifying run needs more writes.
func MeasuresInBursts(member bool, v health.Assessment) bool {
	return !member && v.Figures.QualifyNeed > 0
}

// activity is a condition in which the cluster is not quiet, even if this host has nothing to do.
type activity struct {
	name  string
	holds func(View) bool
}

// activities returns all conditions in which the cluster is not quiet. In a quiet cluster the members' answers of the
// previous round can be used again. The only cost is that a silent member is noticed one round later.
func activities() []activity {
	return []activity{
		{"this host is unhealthy", func(v View) bool { return v.Health.State != health.OK }},
		{"this host has a request", func(v View) bool {
			return v.Asked != nil || v.Removal != nil ||
				v.TransferAsked != nil
		}},
		{"the lock is held", func(v View) bool { return v.Lock.Held }},
		{"an operation is in flight", func(v View) bool { return v.Op != nil }},
		{"a rollout runs", func(v View) bool { return v.Rollout != nil && v.Rollout.Runs }},
		{"a record cannot be read", func(v View) bool { return len(v.Unreadable) > 0 }},
		{"the members have changed", func(v View) bool { return v.Cluster.StableFor < v.Limits.Settle }},
		{"a member is unhealthy or recovered only recently", func(v View) bool {
			return slices.ContainsFunc(v.Cluster.Members, func(m Member) bool { return unsettled(v, m) })
		}},
		{"a host has a request or is in an operation", func(v View) bool {
			return slices.ContainsFunc(v.Hosts, func(h Host) bool { return h.Wants != "" || h.InOperation })
		}},
		{"a host cannot reach a member", func(v View) bool {
			return slices.ContainsFunc(v.Hosts, func(h Host) bool {
				unreached := func(s record.Reachability) bool { return s.Lost() || s.Unsure() }
				return h.MemberLostFor > 0 || slices.ContainsFunc(h.Sees, unreached)
			})
		}},
	}
}

// unsettled reports whether a member is silent, has errors, is behind or has lost its agent, or has been live only for
// a short time.
func unsettled(v View, m Member) bool {
	return !m.Live || m.Errors || m.LiveFor < v.Limits.Settle || !m.LagKnown || m.BehindFor > 0 || m.AgentGoneFor > 0
}

// quiet reports whether this host has a member and nothing to do, and the cluster has no activity.
func quiet(v View, d Decision) bool {
	atRest := len(d.Reasons) > 0 && d.Reasons[0].Code == Idle
	serves := d.Role == RoleVoter || d.Role == RoleStandby || d.Role == RoleLearner
	if !atRest || d.Step.Kind != StepNone || d.Again != 0 || !serves ||
		d.Notes.Queue.News || d.Notes.Backup.Take || d.Notes.RestoreTest.Run {
		return false
	}
	return !slices.ContainsFunc(activities(), func(u activity) bool { return u.holds(v) })
}
