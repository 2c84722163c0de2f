// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package policy

// Recovery is the plan by which a cluster is brought back that has lost its majority for good, as far as it concerns
// this host. While there is one this host does nothing else.
type Recovery struct {
	Plan     string
	By       string
	Old, New uint64 // cluster IDs
	Survivor bool   // this host goes on alone; else it lays its data aside and joins again
	Member   uint64 // of the data that the plan was made for; 0 when this host had none
	Noted    bool   // this host's disk says that it belongs to the new cluster
	// Late: there is no plan, but the cluster that answers was recovered without this host.
	Late bool
	// OldServes tells of a late host that its own member still has a quorum of the old cluster behind it.
	OldServes bool
	Copy      Copy // of the survivor's data
}

// CopyState is how far the copy of the survivor's data is.
type CopyState string

// The states of the copy. The zero value means that this agent has begun none, whatever one before it has done.
const (
	CopyNone   CopyState = ""
	CopyRuns   CopyState = "running"
	CopyWhole  CopyState = "whole"
	CopyFailed CopyState = "failed"
)

// Copy is the copy of the survivor's data.
type Copy struct {
	State CopyState
	Text  string // why it has failed
}

// Old tells whether the data directory still holds what the plan was made for.
func (r *Recovery) old(d Data) bool { return d.State == DataMember && d.ClusterID == r.Old }

// recovery does what a plan asks of this host, one small step after the other. Each is safe to be taken again.
func recovery(v View) (Decision, bool) {
	r := v.Recovery
	if r == nil {
		return Decision{}, false
	}
	switch {
	case v.Cluster.Reachable && v.Cluster.ID == r.Old && !r.Late:
		if r.Survivor && !r.old(v.Data) {
			return wait(Recovering, "the old cluster %x answers again, while this host has the new one's data: keep "+
				"one of them off", r.Old), true
		}
		if r.old(v.Data) && (v.Unit.State == UnitInactive || v.Unit.State == UnitFailed) {
			return bringUp(v), true
		}
		return do(Step{Kind: StepEndRecovery, Outcome: QuorumBack}), true
	case r.OldServes && v.Unit.State == UnitActive:
		return wait(ClusterIDMismatch, "this host's etcd still serves the old cluster %x with a quorum, while %x says "+
			"that it goes on in its place: stop etcd by hand on the hosts of the one that is to go", r.Old, r.New), true
	case v.Data.State == DataUnknown:
		return wait(DataNotKnown, "the data directory has not been looked at: %s", v.Data.Detail), true
	case v.Unit.State == UnitUnknown || v.Unit.State == UnitMissing:
		return because(v, vetoUnitUnusable), true
	case r.Survivor:
		return surviveAlone(v), true
	}
	return layAside(v), true
}

// surviveAlone makes of this host's data a cluster of one: on a copy, which takes the place of the old data once it is
// whole.
func surviveAlone(v View) Decision {
	r := v.Recovery
	if v.Data.State == DataMember && v.Data.ClusterID == r.New {
		switch {
		case !r.Noted: // the agent has died in between
			return do(Step{Kind: StepPlaceCopy})
		case v.Cluster.Reachable && v.Cluster.ID == r.New:
			return do(Step{Kind: StepEndRecovery, Outcome: Recovered})
		}
		return bringUp(v)
	}
	if d, runs := stopForRecovery(v); runs {
		return d
	}
	switch r.Copy.State {
	case CopyRuns:
		return wait(Recovering, "a copy of this host's data is made a cluster of its own")
	case CopyWhole:
		return do(Step{Kind: StepPlaceCopy})
	case CopyFailed:
		if v.Recovery.retried(v) {
			return wait(Recovering, "the copy has failed and is tried again soon: %s", r.Copy.Text)
		}
	case CopyNone:
	}
	// A move that was cut short leaves what cannot be read, or nothing: the copy is whole then, and found to be.
	if v.Data.State == DataMember && !r.old(v.Data) {
		return wait(DataUnusable, "the data are of cluster %x, the plan was made for %x", v.Data.ClusterID, r.Old)
	}
	return do(Step{Kind: StepCopyData})
}

// retried tells whether a copy that has failed was begun too short a time ago to begin again.
func (r *Recovery) retried(v View) bool { return v.CopiedFor < v.Limits.StartRetry }

// layAside puts this host's old data out of the way, and leaves the rest to the ordinary join. It does so only once the
// recovered cluster answers: until then this may be the data that people need, should the survivor's be no use.
func layAside(v View) Decision {
	r := v.Recovery
	newer := v.Data.State == DataMember && v.Data.ClusterID == r.New
	if newer && r.Noted {
		return do(Step{Kind: StepEndRecovery, Outcome: Recovered})
	}
	if d, runs := stopForRecovery(v); runs {
		return d
	}
	if v.Data.State != DataEmpty && !newer {
		if !v.Cluster.Reachable || v.Cluster.ID != r.New {
			return wait(Recovering, "etcd is stopped; its data is moved aside once the recovered cluster %x answers",
				r.New)
		}
		return do(Step{Kind: StepLayAside})
	}
	return do(Step{Kind: StepEndRecovery, Outcome: Recovered})
}

// stopForRecovery stops etcd and keeps it from starting by itself.
func stopForRecovery(v View) (Decision, bool) {
	switch v.Unit.State {
	case UnitActive, UnitActivating:
		return do(Step{Kind: StepStopForRecovery}), true
	case UnitDeactivating:
		return wait(Stopping, "etcd is on its way down"), true
	}
	return Decision{}, false
}
