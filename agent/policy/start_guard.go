// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package policy

// StartGuard keeps etcd's unit from starting by itself. At a boot it would start before any voter can be asked: on a
// host without a member it would create a cluster of its own, or come back as a member that was removed.
type StartGuard uint8

// The changes of the start guard. The zero value leaves it as it is. A step carries one as well: how the guard must be
// set before the step begins.
const (
	GuardUnchanged StartGuard = iota // unknown now
	GuardSet                   // it is set, and the unit does not start
	GuardCleared                    // it is not set
)

// wantHold decides whether etcd may start by itself. It only guards a unit that does not run, based on what the cluster
// reported in this round; or a host that has no data and never knew a cluster, which may reboot before there is one. An
// etcd that starts on a host without a member does not get far: if a member's disk was replaced, it exits at once, and
// systemd restarts it forever. A running etcd is not stopped by the guard.
//
// It removes the guard only where the data of a listed member is: until a join has started etcd, which removes it as
// well, the unit's environment is not that of the join. A request decides while it exists, and its guard ends with it:
// otherwise a boot at that moment would find a guard that no request explains.
func wantGuard(v View, request RequestNote) StartGuard {
	joining := v.cannotRead(RecordOp) || v.Op != nil && v.Op.Host == v.Self.ID
	down := v.Unit.State == UnitInactive || v.Unit.State == UnitFailed
	futile := v.Unit.State == UnitActivating && v.Cluster.Reachable
	bare := v.Data.State == DataEmpty && v.Cluster.ExpectedID == 0
	m, listed := v.member()
	switch {
	case v.Recovery != nil && down && v.Recovery.outOfService(v): // if etcd was down before, no step is due
		return GuardSet
	case v.Recovery != nil: // its steps set it: see guardOf
		return GuardUnchanged
	case listed && v.gaveUp(m) && v.Self.Mode == Manage && !v.foreign() && (down || futile):
		return GuardSet // its etcd would vote, but has forgotten what it acknowledged
	case v.Asked != nil && v.Asked.Stopped && request.Change != RequestEnds && request.Change != RequestEnding:
		// its steps set it
		return GuardUnchanged
	case v.Self.Mode != Manage || v.foreign() || v.Data.State == DataUnknown:
		return GuardUnchanged
	case v.Cluster.Reachable && !v.Cluster.Fresh: // carried-over observations are not the cluster's current state
		return GuardUnchanged
	case v.Cluster.Reachable && v.Data.State == DataMember && v.listed(v.Data.MemberID),
		v.Bootstrap.Requested && bare && !v.Cluster.Reachable:
		return GuardCleared
	case v.Cluster.Reachable && listed:
		return GuardUnchanged
	case (down || futile) && !joining && !v.Bootstrap.Requested && (v.Cluster.Reachable || bare):
		return GuardSet
	}
	return GuardUnchanged
}

// guardOf returns how the start guard must be set before a step begins. During work that only an operator ends, a
// reboot must not start etcd while the operator works; for any other work, etcd starts with the machine. If a request,
// or an abandoned plan, ends with the step, its guard is removed first: afterwards no record would explain it.
func guardOf(v View, s Step, request RequestNote, hold StartGuard) StartGuard {
	switch {
	case s.Kind == StepTakeDown && v.Asked.Work.info().operatorEnds:
		return GuardSet
	case s.Kind == StepEndOp && s.Outcome == MemberLost:
		return GuardSet
	case s.Kind == StepEndOp && request.Change == RequestEnding && hold == GuardCleared,
		s.Kind == StepEndRecovery && s.Outcome == RecoveryGivenUp && v.Recovery.isOldData(v.Data):
		return GuardCleared
	}
	return s.Kind.Info().Guard
}

// loosened ends a request with its start guard: once the request is gone, nothing explains the guard.
func withGuard(request RequestNote, hold StartGuard) RequestNote {
	if request.Change == RequestEnds && hold == GuardCleared {
		request.Guard = hold
	}
	return request
}
