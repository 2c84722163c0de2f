// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"fmt"

	"github.com/quorumd/quorumd/agent/durationfmt"
	"github.com/quorumd/quorumd/health"
)

// A member leaves for good in an operation that its own host carries out and the other hosts only observe. Therefore a
// record in etcd alone never removes a member whose own host's agent does not agree. Members leave because the cluster
// was resized, or because their host was retired.
//
// A voter leaves only while all other voters are known to be live and healthy. The cluster therefore never has fewer
// healthy voters than the new quorum, and a dead or unhealthy voter goes first: it is removed as a surplus voter.

// leave begins the operation in which this host's member leaves, unless a veto applies. While a veto applies, this host
// takes its other steps.
func leave(v View) (Decision, bool) {
	m, listed := v.member()
	if !listed || v.Op != nil || !v.Cluster.Reachable || v.foreign() || !v.leavesNow(m) ||
		len(against(v, leaveVetoes())) > 0 {
		return Decision{}, false
	}
	why := v.leaveText(m)
	if !v.Lock.Mine {
		return do(Step{Kind: StepTakeLock, Why: why}), true
	}
	return do(Step{Kind: StepBeginLeave, MemberID: m.ID, Why: why}), true
}

// leavesNow reports whether a member should leave. If an operator has recorded a size, a voter leaves if there are more
// voters than that, and a standby if there are more standbys than configured and no voter is missing. The learner of a
// retired host leaves unless it is joining.
func (v View) leavesNow(m Member) bool {
	if m.Learner {
		voters, _ := v.Cluster.Counts()
		surplus := v.Target.Resized && voters-v.retiring() >= v.Target.Voters &&
			v.Cluster.learning() > v.Target.Standbys
		_, gone := dataGone(v, m) // a learner without its data is no longer a standby
		own := m.PeerURL == v.Self.PeerURL && !v.Op.joins()
		return m.Standby && (surplus && !m.Permanent || v.retires(m)) || gone && own && v.retires(m)
	}
	return v.Target.Resized && v.surplusVoters(m) > 0
}

// leaveText returns why a member leaves.
func (v View) leaveText(m Member) string {
	if v.retires(m) {
		return "its host is retired"
	}
	voters, _ := v.Cluster.Counts()
	if m.Learner {
		return fmt.Sprintf("it is a standby, but the configured number of standbys is %d", v.Target.Standbys)
	}
	return fmt.Sprintf("the cluster has %d voters, but an operator has resized it to %d", voters, v.Target.Voters)
}

// leaveVetoes returns the vetoes against a leave, in the order in which they are reported.
func leaveVetoes() []veto {
	return []veto{
		vetoHostConflict(),
		vetoMaintenanceOverdue(),
		vetoInMaintenance(),
		vetoCorrupt(),
		vetoNoSpace(),
		vetoLeaveAtRisk(),
		vetoLearnerUnsettled(),
		vetoUnitUnusable(),
		vetoAloneWithoutSnapshot(),
		vetoLastLeaves(),
		vetoOperationInFlight(),
		vetoLockHeld(),
		vetoSettling(),
		vetoRemovalPending(),
		vetoNotFirstToLeave(),
	}
}

// removalPending reports whether a removal that was sent for an earlier operation may still take effect. It takes
// effect within the lock's TTL or never. If that removal removed the other of two voters, the cluster would have no
// voter left after this one leaves.
func removalPending(v View) (string, bool) {
	left := v.Limits.LockTTL - v.IdleFor
	if left <= 0 {
		return "", false
	}
	return fmt.Sprintf("the last operation ended %s ago; its calls to etcd take effect within %s or never",
		durationfmt.Tenths(v.IdleFor), durationfmt.Text(v.Limits.LockTTL)), true
}

// leaveAtRisk reports whether this host's voter may not leave because the others are not all known to be live and
// healthy.
func leaveAtRisk(v View) (string, bool) {
	own, _ := v.member()
	if own.Learner { // no quorum depends on a learner
		return "", false
	}
	voters, _ := v.Cluster.Counts()
	proven, why := 0, ""
	for m := range v.Cluster.voters() {
		if m.ID == own.ID {
			continue
		}
		if doubt := v.notProven(m, health.Maintenance); doubt != "" {
			why = "voter " + m.label() + " " + doubt
			continue
		}
		proven++
	}
	switch {
	case mayLeave(voters, proven, v.Target) && v.leavesNow(own):
		return "", false
	case !v.leavesNow(own):
		return fmt.Sprintf("there are %d voters, and the size is %d", voters, v.Target.Voters), true
	}
	return "no voter leaves unless all others are live and healthy: " + why, true
}

// aloneWithoutSnapshot reports whether the cluster is about to shrink to one voter without a recent snapshot, and no
// operator has allowed that: afterwards, one failed disk loses all data since the newest snapshot. It applies already
// to three voters, because the two that remain after the first leave tolerate no failure either.
func aloneWithoutSnapshot(v View) (string, bool) {
	voters, _ := v.Cluster.Counts()
	fresh := v.Backup.HasSnapshot && v.Backup.Age.Abs() <= freshFor
	if v.retiring() > 0 || !v.Target.Resized || v.Target.Voters != 1 || voters > 3 || v.Target.WithoutSnapshot ||
		fresh {
		return "", false
	}
	return fmt.Sprintf("no verified snapshot is younger than %s, and with one voter a failed disk loses the data",
		durationfmt.Text(freshFor)), true
}

// leaves declares the operation in which a member leaves for good. The member's host transfers leadership, if the
// member leads, and removes the member. Then it stops etcd and moves the data aside. If that host's agent is gone, a
// voter's agent ends the operation once no removal can take effect any more.
func leaves() operation {
	return operation{
		kind:          KindLeave,
		noun:          "leave",
		phases:        []OpPhase{PhaseBegun, PhaseRemoving, PhaseRollback},
		awaitsRecords: []OpPhase{PhaseBegun, PhaseRemoving},
		removes:       func(op *Op) uint64 { return op.MemberID },
		title: func(t OperationTitle) string {
			return fmt.Sprintf("%s of voter %s", t.Kind, t.HostName)
		},
		carry: carryLeave,
		orphan: func(v View) Decision {
			if v.Op.Token != v.Lock.Token {
				return rollBackOrphan(v)
			}
			return endLeave(v)
		},
	}
}

// carryLeave continues the leave of this host's member from any phase.
func carryLeave(v View) Decision {
	if d, decided := underLock(v, "to continue leaving the cluster"); decided {
		return d
	}
	m, listed := v.member()
	switch {
	case !listed:
		return afterLeave(v)
	case v.Op.Phase == PhaseRollback:
		return endLeave(v)
	}
	code, text := leaveEnds(v, m)
	switch {
	case code != "" && v.Op.Phase == PhaseBegun:
		return do(Step{Kind: StepEndOp, Outcome: code, Why: text})
	case code != "": // the removal may have reached etcd
		return do(Step{Kind: StepRollBack, MemberID: v.Op.MemberID, Outcome: code, Why: text})
	}
	if ids, names := notReported(v, v.Self.PeerURL); len(ids) > 0 {
		d := wait(HealthAwaited, "%s waits for fresh health states from %s", v.Self.Name, joinNames(names))
		d.Again, d.Behind = lookSoon, ids
		return d
	}
	if m.Leader {
		return transferBeforeLeave(v, m)
	}
	if v.Op.Phase == PhaseBegun {
		return do(Step{Kind: StepSetPhase, Phase: PhaseRemoving, MemberID: m.ID})
	}
	// Proxies stop using a voter whose removal is recorded. A client that is connected to a removed member gets errors.
	if left := v.Limits.Settle - v.Op.WrittenFor; left > 0 {
		d := wait(Settling, "the proxies' clients have another %s to move to other voters", durationfmt.Tenths(left))
		d.Again = left
		return d
	}
	return do(Step{Kind: StepRemoveMember, MemberID: m.ID, Why: v.Op.Reason})
}

// transferBeforeLeave transfers leadership from this host's voter before it leaves. If that keeps failing, or no other
// voter may lead, the voter stays.
func transferBeforeLeave(v View, m Member) Decision {
	best, found := bestVoter(v, m.PeerURL)
	why := "no other voter may lead"
	switch {
	case found && (v.Failed.Kind != StepTransferLeadership || v.Op.WrittenFor <= v.Limits.TransferTimeout):
		return do(Step{Kind: StepTransferLeadership, MemberID: best.ID, Why: "to " + best.label()})
	case found:
		why = v.Failed.Text
	}
	if v.Op.Phase == PhaseBegun {
		return do(Step{Kind: StepEndOp, Outcome: LeadershipNotTransferred, Why: why})
	}
	return do(Step{Kind: StepRollBack, MemberID: v.Op.MemberID, Outcome: LeadershipNotTransferred, Why: why})
}

// leaveEnds returns why this host's member stays; an empty code if it still leaves. It is checked in every round until
// the member is removed.
func leaveEnds(v View, m Member) (ReasonCode, string) {
	voters, _ := v.Cluster.Counts()
	switch {
	case v.Op.MemberID != m.ID: // otherwise any client that can write the operation record could remove members
		return OperationRejected, "the operation names a member that is not this host's"
	case !v.leavesNow(m) && m.Learner:
		return TargetMet, "it no longer has to leave"
	case !v.leavesNow(m):
		return TargetMet, fmt.Sprintf("there are %d voters, and the size is %d", voters, v.Target.Voters)
	case v.Op.Elapsed > v.Limits.LearnerStall:
		return JoinTimedOut, fmt.Sprintf("the removal of the voter has not succeeded for %s; the limit is %s",
			durationfmt.Seconds(v.Op.Elapsed), durationfmt.Text(v.Limits.LearnerStall))
	}
	if r, holds := vetoed(
		v, vetoCorrupt, vetoNoSpace, vetoLeaveAtRisk, vetoAloneWithoutSnapshot, vetoLastLeaves,
	); holds {
		return r.Code, r.Text
	}
	return "", ""
}

// afterLeave stops the etcd of the removed member, moves its data aside, and ends the operation.
func afterLeave(v View) Decision {
	switch {
	case v.Unit.State == UnitDeactivating:
		return wait(Stopping, "etcd is stopping")
	case unitRuns(v) && v.Self.Drives:
		return do(Step{Kind: StepStopUnit, Why: fmt.Sprintf("member %x has left the cluster", v.Op.MemberID)})
	case unitRuns(v): // the external manager stops etcd
	case v.Op.WrittenFor > v.Limits.LearnerStall: // the disk may hang: the next join moves the data aside
	case v.Data.State == DataUnknown || v.Data.Age >= v.Unit.Since:
		d := wait(DataNotKnown, "the data directory has not been read since etcd was stopped")
		d.Again = lookSoon
		return d
	case v.Data.State == DataMember && v.Data.MemberID == v.Op.MemberID:
		return do(Step{
			Kind: StepMoveDataAside, Why: fmt.Sprintf("it belongs to member %x, which has left", v.Data.MemberID),
		})
	}
	return do(Step{Kind: StepEndOp, Outcome: Removed, Why: v.Op.Reason})
}

// endLeave ends a leave that is given up, or that belongs to another host whose agent is gone. While the member is
// still listed, the operation does not end until its record has not changed for the lock's TTL: a removal sent to etcd
// takes effect within that time or never.
func endLeave(v View) Decision {
	m, there := v.memberByID(v.Op.MemberID)
	if !there {
		return do(Step{Kind: StepEndOp, Outcome: Removed, Why: v.Op.Reason})
	}
	if left := v.Limits.LockTTL - v.Op.WrittenFor; left > 0 {
		return wait(Settling, "a removal of %s may be pending in etcd; it takes effect within %s or never", m.label(),
			durationfmt.Tenths(left))
	}
	return do(Step{Kind: StepEndOp, Outcome: v.Op.rolledBack()})
}
