// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package policy

// StartGuard is a change of the start guard, which keeps etcd's unit from starting on its own. At a boot the unit would
// start before the agent can ask any voter. On a host without a member, etcd would then create a new cluster, or start
// as a removed member.
type StartGuard uint8

// The changes. The zero value leaves the guard as it is. A step may include a change, which is made before the step
// begins.
const (
	GuardUnchanged StartGuard = iota
	GuardSet                  // the unit does not start
	GuardCleared              // the unit may start
)

// wantGuard returns how the start guard changes. It sets the guard on a host that has given up its member or has no
// member, and only if the unit does not run or keeps restarting. A host counts as having no member only if the cluster
// answered in this round, or if the host has no data and never had a cluster: such a host may reboot before a cluster
// exists. During a recovery, it sets the guard only on a host that is out of service and whose unit does not run. The
// guard never stops a running etcd.
//
// It clears the guard if the data directory is that of a listed member, or if a bootstrap is requested on a new host
// and no cluster answers. During a join, the step that starts etcd clears the guard, because the unit's environment is
// written only shortly before. While etcd is stopped for a request, the steps of its operation change the guard, and
// the end of the request clears it. Otherwise the guard could prevent etcd's start at a boot after the request is gone.
func wantGuard(v View, request RequestNote) StartGuard {
	joining := v.cannotRead(RecordOp) || v.Op != nil && v.Op.Host == v.Self.ID
	down := v.Unit.State == UnitInactive || v.Unit.State == UnitFailed
	futile := v.Unit.State == UnitActivating && v.Cluster.Reachable
	isNew := v.Data.State == DataEmpty && v.Cluster.ExpectedID == 0
	m, listed := v.member()
	switch {
	case v.Recovery != nil && down && v.Recovery.outOfService(v): // if etcd is down already, no step sets the guard
		return GuardSet
	case v.Recovery != nil: // the plan's steps change the guard: see guardOf
		return GuardUnchanged
	case listed && v.gaveUp(m) && v.Self.Mode == Manage && !v.foreign() && (down || futile):
		return GuardSet // the etcd would vote without the entries that the member has acknowledged
	case v.Asked != nil && v.Asked.Stopped && request.Change != RequestEnds && request.Change != RequestEnding:
		// the steps of the request's operation change the guard
		return GuardUnchanged
	case v.Self.Mode != Manage || v.foreign() || v.Data.State == DataUnknown:
		return GuardUnchanged
	case v.Cluster.Reachable && !v.Cluster.Fresh: // carried-over observations are not the cluster's current state
		return GuardUnchanged
	case v.Cluster.Reachable && v.Data.State == DataMember && v.listed(v.Data.MemberID),
		v.Bootstrap.Requested && isNew && !v.Cluster.Reachable:
		return GuardCleared
	case v.Cluster.Reachable && listed:
		return GuardUnchanged
	case (down || futile) && !joining && !v.Bootstrap.Requested && (v.Cluster.Reachable || isNew):
		return GuardSet
	}
	return GuardUnchanged
}

// guardOf returns how the start guard changes before a step begins. During work that only an operator ends, a reboot
// must not start etcd while the operator works; for any other work, etcd starts with the machine. If an operation ends
// because the host's member is lost, the guard is set. If a request, or a plan that was given up, ends with the step,
// its guard is cleared first, because afterwards no record would show why the guard is set.
func guardOf(v View, s Step, request RequestNote, want StartGuard) StartGuard {
	switch {
	case s.Kind == StepTakeDown && v.Asked.Work.info().operatorEnds:
		return GuardSet
	case s.Kind == StepEndOp && s.Outcome == MemberLost:
		return GuardSet
	case s.Kind == StepEndOp && request.Change == RequestEnding && want == GuardCleared,
		s.Kind == StepEndRecovery && s.Outcome == RecoveryGivenUp && v.Recovery.isOldData(v.Data):
		return GuardCleared
	}
	return s.Kind.Info().Guard
}

// withGuard returns the request's change. It clears the guard with a request that ends, because afterwards no record
// would show why the guard is set.
func withGuard(request RequestNote, want StartGuard) RequestNote {
	if request.Change == RequestEnds && want == GuardCleared {
		request.Guard = want
	}
	return request
}

// FirstStart holds what the start guard reads, as root, when systemd is about to start etcd's unit, whether or not an
// agent runs.
type FirstStart struct {
	// Manages reports that a valid agent configuration names this unit and sets mode: manage.
	Manages bool
	// AgentStarts reports that the agent's unit runs or is started at boot. In that case the agent decides about etcd's
	// start.
	AgentStarts bool
	// Decided reports that quorumd has written the unit's environment: it has begun a cluster or a join here.
	Decided bool
	// NoMember reports that none of the directories that etcd may use holds a member, and that each of them was
	// readable and is on a mounted file system. It is false if any of this is unknown.
	NoMember bool
}

// StartGuarded reports whether etcd must not start yet. On an empty disk, without an environment, it would create a
// single-member cluster on localhost. If anything is unknown, it may start: an etcd with data never depends on quorumd.
func (f FirstStart) StartGuarded() bool {
	return f.Manages && f.AgentStarts && !f.Decided && f.NoMember
}
