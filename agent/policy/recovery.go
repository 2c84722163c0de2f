// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package policy

// Recovery is the part of a recovery plan after quorum loss that concerns this host. While there is one, this host does
// nothing else.
type Recovery struct {
	Plan     string // its ID
	By       string
	Old, New uint64 // cluster IDs
	Survivor bool   // this host continues alone; otherwise it moves its data aside and joins again
	Snapshot bool   // this host restores a snapshot, even if it has data
	Member   uint64 // the member in this host's data when the plan was made; 0 if there was none
	GivenUp  bool   // an operator gave the plan up before this host moved its data
	Noted    bool   // this host's disk records that it belongs to the new cluster
	// Late reports that there is no plan, but the cluster that answers was recovered without this host.
	Late bool
	// OldServes reports that a late host's own member still has a quorum of the old cluster.
	OldServes bool
	Copy      Copy // of the survivor's data
}

// CopyState is the state of the copy of the survivor's data.
type CopyState string

// The states of the copy. The zero value means that this agent has not begun one; an earlier agent may have.
const (
	CopyNone     CopyState = ""
	CopyRuns     CopyState = "running"
	CopyComplete CopyState = "whole"
	CopyFailed   CopyState = "failed"
)

// Copy is the copy of the survivor's data.
type Copy struct {
	State CopyState
	Text  string // why it failed
}

// isOldData reports whether the data directory still holds data of the old cluster.
func (r *Recovery) isOldData(d Data) bool { return d.State == DataMember && d.ClusterID == r.Old }

// outOfService reports whether this host's etcd must not start at a boot: while a plan is in force, it would serve the
// old cluster next to the new one or, without data, create another cluster. If the old cluster answers, the plan ends
// and etcd may start.
func (r *Recovery) outOfService(v View) bool {
	recovered := v.Data.State == DataMember && v.Data.ClusterID == r.New
	back := v.Cluster.Reachable && v.Cluster.ID == r.Old
	return v.Self.Mode == Manage && !r.GivenUp && !r.Late && !recovered && !back && v.Data.State != DataUnknown
}

// recovery carries out this host's part of a plan in small steps that are safe to repeat.
func recovery(v View) (Decision, bool) {
	r := v.Recovery
	if r == nil {
		return Decision{}, false
	}
	switch {
	case r.GivenUp:
		return keepData(v), true
	case v.Cluster.Reachable && v.Cluster.ID == r.Old && !r.Late:
		if r.Survivor && !r.isOldData(v.Data) && (!r.Snapshot || v.Data.State != DataEmpty) {
			return wait(Recovering, "the old cluster %x answers again, while this host has the new one's data: keep "+
				"one of them off", r.Old), true
		}
		if r.isOldData(v.Data) && (v.Unit.State == UnitInactive || v.Unit.State == UnitFailed) {
			return bringUp(v), true
		}
		return do(Step{Kind: StepEndRecovery, Outcome: QuorumRestored}), true
	case r.OldServes && v.Unit.State == UnitActive:
		return wait(ClusterIDMismatch, "this host's etcd still serves the old cluster %x with a quorum, while %x "+
			"reports that it replaced it: stop etcd by hand on the hosts of the cluster that you give up", r.Old,
			r.New), true
	case v.Data.State == DataUnknown:
		return wait(DataNotKnown, "the data directory has not been read: %s", v.Data.Detail), true
	case v.Unit.State == UnitUnknown || v.Unit.State == UnitMissing || !v.Self.Drives:
		return blockedBy(v, vetoUnitUnusable), true
	case r.Survivor:
		return surviveAlone(v), true
	}
	return layAside(v), true
}

// keepData ends a plan that was given up: etcd starts on its old data, with or without a quorum. On a host without data
// it does not start.
func keepData(v View) Decision {
	r := v.Recovery
	failed := v.Unit.State == UnitFailed && v.Unit.SinceStart >= v.Limits.StartRetry
	switch {
	case r.Copy.State == CopyRuns:
		return wait(Recovering, "the plan was given up; the copy that is being made still has etcd's data open")
	case v.Data.State == DataUnknown:
		return wait(DataNotKnown, "the data directory has not been read: %s", v.Data.Detail)
	case v.Unit.State == UnitDeactivating:
		return wait(Stopping, "etcd is stopping")
	case r.isOldData(v.Data) && (v.Unit.State == UnitInactive || failed):
		return do(Step{Kind: StepStartUnit, Why: "the plan was given up"})
	}
	return do(Step{Kind: StepEndRecovery, Outcome: RecoveryGivenUp})
}

// surviveAlone creates a single-member cluster from a copy of this host's data. The copy replaces the old data once it
// is complete.
func surviveAlone(v View) Decision {
	r := v.Recovery
	if v.Data.State == DataMember && v.Data.ClusterID == r.New {
		switch {
		case !r.Noted: // the agent died after it had moved the copy into place
			return do(Step{Kind: StepPlaceCopy})
		case v.Cluster.Reachable && v.Cluster.ID == r.New:
			return do(Step{Kind: StepEndRecovery, Outcome: Recovered})
		// etcd may never have run here: the disk is new, or the host had no member
		case r.Snapshot && !v.Unit.EnvReady && (v.Unit.State == UnitInactive || v.Unit.State == UnitFailed):
			return do(Step{Kind: StepWriteEnv})
		}
		return bringUp(v)
	}
	if d, runs := stopForRecovery(v); runs {
		return d
	}
	switch r.Copy.State {
	case CopyRuns:
		return wait(Recovering, "a new cluster is built from a copy of this host's data")
	case CopyComplete:
		return do(Step{Kind: StepPlaceCopy})
	case CopyFailed:
		if v.Recovery.tooSoonToRetry(v) {
			return wait(Recovering, "the copy failed and is retried soon: %s", r.Copy.Text)
		}
	case CopyNone:
	}
	// After an interrupted move the data is unreadable or absent; the next step then finds the complete copy.
	if v.Data.State == DataMember && !r.isOldData(v.Data) {
		return wait(DataUnusable, "the data belongs to cluster %x, the plan was made for %x", v.Data.ClusterID, r.Old)
	}
	return do(Step{Kind: StepCopyData})
}

// tooSoonToRetry reports whether it is too soon to retry a failed copy.
func (r *Recovery) tooSoonToRetry(v View) bool { return v.CopiedFor < v.Limits.StartRetry }

// layAside moves this host's old data aside once the recovered cluster answers; the ordinary join follows. Until then
// operators may need this data, in case the survivor's is unusable. A host without data waits as well: if the plan were
// given up, the host would otherwise be recorded as part of a cluster that is never created.
func layAside(v View) Decision {
	r := v.Recovery
	isNew := v.Data.State == DataMember && v.Data.ClusterID == r.New
	if isNew && r.Noted {
		return do(Step{Kind: StepEndRecovery, Outcome: Recovered})
	}
	if d, runs := stopForRecovery(v); runs {
		return d
	}
	answers := v.Cluster.Reachable && v.Cluster.ID == r.New
	switch {
	case v.Data.State == DataEmpty && !answers:
		return wait(Recovering, "this host has no data, and joins once the recovered cluster %x answers", r.New)
	case v.Data.State != DataEmpty && !isNew && !answers:
		return wait(Recovering, "etcd is stopped; its data is moved aside once the recovered cluster %x answers", r.New)
	case v.Data.State != DataEmpty && !isNew:
		return do(Step{Kind: StepLayAside})
	}
	return do(Step{Kind: StepEndRecovery, Outcome: Recovered})
}

// stopForRecovery stops etcd and sets the start guard.
func stopForRecovery(v View) (Decision, bool) {
	switch v.Unit.State {
	case UnitActive, UnitActivating:
		return do(Step{Kind: StepStopForRecovery}), true
	case UnitDeactivating:
		return wait(Stopping, "etcd is stopping"), true
	}
	return Decision{}, false
}
