// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package policy

// StartGuard says whether etcd's unit is to be kept from starting by itself. At a boot it would start before there is
// anybody to ask: on a host that holds no member of the cluster it would make one of its own, or come back as a member
// that was removed.
type StartGuard uint8

// What becomes of the start guard. The zero value leaves it as it is. A step carries one, too: what the guard is to be
// before the step begins.
const (
	HoldAsIs StartGuard = iota // it cannot be told now
	HoldBack                   // it lies there, and the unit does not start
	HoldNot                    // it does not
)

// wantHold tells whether etcd may start by itself. It holds back only a unit that does not run, on the word of the
// cluster in this very round; or on a host that has no data and never knew a cluster, which may reboot before there is
// one. A unit that starts on a host that no member of the cluster belongs to does not get far: etcd of a member whose
// disk was replaced ends at once, and systemd starts it again for ever. What runs is not stopped by that.
//
// It lets go only where the data of a listed member lie: until a join has started etcd, which lets go as well, the
// unit's environment is not that of the join. What was asked of the host decides while it stands, and no longer: with
// its end goes the start guard, or a boot right then would find a guard of which nobody knows why it lies there.
func wantHold(v View, request RequestNote) StartGuard {
	joining := v.cannotRead(RecordOp) || v.Op != nil && v.Op.Host == v.Self.ID
	down := v.Unit.State == UnitInactive || v.Unit.State == UnitFailed
	futile := v.Unit.State == UnitActivating && v.Cluster.Reachable
	bare := v.Data.State == DataEmpty && v.Cluster.ExpectedID == 0
	m, listed := v.member()
	switch {
	case v.Recovery != nil && down && v.Recovery.outOfService(v): // where etcd was down before, no step is due
		return HoldBack
	case v.Recovery != nil: // its steps say it: see guardOf
		return HoldAsIs
	case listed && v.gaveUp(m) && v.Self.Mode == Manage && !v.foreign() && (down || futile):
		return HoldBack // its etcd would vote, and has forgotten what it acknowledged
	case v.Asked != nil && v.Asked.Stopped && request.Change != RequestEnds && request.Change != RequestEnding:
		// its steps say it
		return HoldAsIs
	case v.Self.Mode != Manage || v.foreign() || v.Data.State == DataUnknown:
		return HoldAsIs
	case v.Cluster.Reachable && !v.Cluster.Fresh: // what was carried over is not the cluster's word of now
		return HoldAsIs
	case v.Cluster.Reachable && v.Data.State == DataMember && v.listed(v.Data.MemberID),
		v.Bootstrap.Requested && bare && !v.Cluster.Reachable:
		return HoldNot
	case v.Cluster.Reachable && listed:
		return HoldAsIs
	case (down || futile) && !joining && !v.Bootstrap.Requested && (v.Cluster.Reachable || bare):
		return HoldBack
	}
	return HoldAsIs
}

// guardOf tells what the start guard is to be before a step begins. For work that only a person ends, a reboot must not
// start etcd under someone's hands; for any other, etcd starts with the machine. Where a request, or a plan that was
// given up, ends with the step, its guard goes first: nobody would know after that whose it was.
func guardOf(v View, s Step, request RequestNote, hold StartGuard) StartGuard {
	switch {
	case s.Kind == StepTakeDown && v.Asked.Work.info().byWord:
		return HoldBack
	case s.Kind == StepEndOp && s.Outcome == MemberLost:
		return HoldBack
	case s.Kind == StepEndOp && request.Change == RequestEnding && hold == HoldNot,
		s.Kind == StepEndRecovery && s.Outcome == RecoveryGivenUp && v.Recovery.old(v.Data):
		return HoldNot
	}
	return s.Kind.Info().Guard
}

// loosened has a request end without its start guard: once the request is gone, nothing says whose that was.
func loosened(request RequestNote, hold StartGuard) RequestNote {
	if request.Change == RequestEnds && hold == HoldNot {
		request.Guard = hold
	}
	return request
}
