// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"fmt"

	"github.com/quorumd/quorumd/agent/durationfmt"
)

// ownUnit keeps the etcd of a member running, and stops the etcd of a removed member.
func ownUnit(v View) (Decision, bool) {
	if v.Data.State != DataMember || v.foreign() || (v.Cluster.Reachable && v.Data.ClusterID != v.Cluster.ID) {
		return Decision{}, false // the data belongs to a different cluster; join reports that
	}
	if v.Cluster.Reachable && !v.listed(v.Data.MemberID) {
		return stopRemoved(v)
	}
	if m, _ := v.member(); v.gaveUp(m) && !unitRuns(v) { // the member stays given up even if its disk is back
		return Decision{}, false
	}
	if !v.Cluster.Reachable && (v.Cluster.ExpectedID != v.Data.ClusterID || v.Self.MemberID != v.Data.MemberID) {
		// The member may have been removed: together with other removed members, it could form the old quorum.
		return wait(NoQuorum, "%s; the data directory is not known to belong to a current member",
			v.unreachable()), true
	}
	down := v.Unit.State == UnitFailed || v.Unit.State == UnitInactive
	if down && v.Asked != nil && v.Asked.Stopped {
		return stoppedWithoutOperation(v), true
	}
	switch v.Unit.State {
	case UnitFailed:
		return startAgain(v), true
	case UnitInactive:
		if !v.Self.Drives { // how etcd ended is unknown: only report that the member does not answer
			return Decision{}, false
		}
		return stopped(v), true
	case UnitActivating:
		return wait(Starting, "etcd is starting"), true
	}
	return Decision{}, false
}

// stopped waits after a clean exit of etcd: an operator stopped it, or it exited with status 0 or 1 because its member
// was removed. While no voter answers, the two look alike.
func stopped(v View) Decision {
	d := wait(UnitStopped, "etcd was stopped cleanly")
	if !v.Cluster.Reachable {
		d.Reasons[0].Text += ", or exited because its member was removed"
		d.Reasons = append(d.Reasons, waitForCluster(v).Reasons...)
	}
	return d
}

// stopRemoved stops an etcd whose member is no longer in the member list. The data must have been read after the list
// changed and after etcd started, because a host that was added again has a different member ID.
func stopRemoved(v View) (Decision, bool) {
	running := v.Unit.State == UnitActive || v.Unit.State == UnitActivating
	if !running || v.Data.Age >= min(v.Cluster.StableFor, v.Unit.Since) {
		return Decision{}, false
	}
	return do(Step{Kind: StepStopUnit, Why: fmt.Sprintf("member %x was removed from the cluster", v.Data.MemberID)}),
		true
}

// startAgain starts the failed etcd of a member. It needs no lock: a returning member does not lower the fault
// tolerance.
func startAgain(v View) Decision {
	if r, holds := vetoed(v, vetoVersionUnknown, vetoVersionIncompatible); holds {
		return Decision{Reasons: []Reason{r}}
	}
	if left := v.Limits.StartRetry - v.Unit.SinceStart; left > 0 {
		return startLater(v, "etcd failed; it is restarted in %s", durationfmt.Tenths(left))
	}
	return do(Step{Kind: StepStartUnit, Why: "it has failed: " + v.Unit.Detail})
}

// ownMemberDown returns why this host's member does not answer.
func ownMemberDown(v View, m Member) Decision {
	if !v.Self.Drives && v.Self.Conflict == "" {
		return wait(MemberDown, "%s; member %s does not answer", v.externalReason().Text, m.label())
	}
	if r, holds := vetoed(v, vetoHostConflict, vetoDataUnusable); holds {
		return Decision{Reasons: []Reason{r}}
	}
	if text, gone := dataGone(v, m); gone {
		return wait(MemberLost, "%s", text)
	}
	if r, holds := vetoed(v, vetoUnitUnusable); holds {
		return Decision{Reasons: []Reason{r}}
	}
	return wait(MemberDown, "member %s does not answer; unit: %s, state of the data directory: %s", m.label(),
		v.Unit.State, orUnknown(v.Data.State))
}

// bringUp starts etcd and waits for it.
func bringUp(v View) Decision {
	switch v.Unit.State {
	case UnitInactive, UnitFailed:
		if v.Unit.SinceStart < v.Limits.StartRetry {
			return startLater(v, "etcd exited and will be restarted soon; unit: %s", v.Unit.Detail)
		}
		return do(Step{Kind: StepStartUnit})
	case UnitUnknown, UnitMissing:
		return blockedBy(v, vetoUnitUnusable)
	}
	return wait(Starting, "etcd is %s", v.Unit.State)
}

// startLater waits between two starts of etcd. If the last start step failed, its error is the reason rather than
// etcd's earlier exit.
func startLater(v View, format string, args ...any) Decision {
	if v.Failed.Kind == StepStartUnit {
		return wait(StepFailed, "%s", v.Failed.Text)
	}
	d := wait(Starting, format, args...)
	if text, older := incompatibleText(v); older { // the likely cause, except for the last member of an upgrade
		d.Reasons = append(d.Reasons, Reason{VersionIncompatible, text})
	}
	return d
}

func unitRuns(v View) bool {
	switch v.Unit.State {
	case UnitActive, UnitActivating, UnitDeactivating:
		return true
	}
	return false
}
