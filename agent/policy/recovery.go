// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/quorumd/quorumd/agent/durationfmt"
)

// Recovery is the part of a recovery plan after quorum loss that concerns this host. While there is one, this host does
// nothing else.
type Recovery struct {
	Plan     string // the plan's ID
	By       string
	Old, New uint64 // cluster IDs
	Survivor bool   // this host continues alone; otherwise it moves its data aside and joins again
	Snapshot bool   // this host restores a snapshot, even if it has data
	Member   uint64 // the member in this host's data when the plan was made; 0 if there was none
	GivenUp  bool   // an operator gave the plan up before this host moved its data
	Noted    bool   // this host's disk records that it belongs to the new cluster
	// Late reports that there is no plan, but the cluster that answers was recovered without this host.
	Late bool
	// OldServes reports that the member of this late host still serves the old cluster with a quorum.
	OldServes bool
	Copy      Copy // the copy of the survivor's data
}

// CopyState is the state of the copy of the survivor's data.
type CopyState string

// The states of the copy. The zero value means that this agent process has not begun a copy; an earlier process may
// have begun one.
const (
	CopyNone     CopyState = ""
	CopyRuns     CopyState = "running"
	CopyComplete CopyState = "whole"
	CopyFailed   CopyState = "failed"
)

// Copy is the copy of the survivor's data.
type Copy struct {
	State CopyState
	Text  string // why the copy failed
}

// isOldData reports whether the data directory still holds data of the old cluster.
func (r *Recovery) isOldData(d Data) bool { return d.State == DataMember && d.ClusterID == r.Old }

// outOfService reports whether this host's etcd must not start at boot: while a plan is in force, it would serve the
// old cluster next to the new one or, without data, create a third cluster. If the old cluster answers, the plan ends
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
			return wait(Recovering, "the old cluster %x answers again, but this host's data no longer belongs "+
				"to it: keep powered off either this host or the hosts of the old cluster", r.Old), true
		}
		if r.isOldData(v.Data) && (v.Unit.State == UnitInactive || v.Unit.State == UnitFailed) {
			return bringUp(v), true
		}
		return do(Step{Kind: StepEndRecovery, Outcome: QuorumRestored}), true
	case r.OldServes && v.Unit.State == UnitActive:
		return wait(ClusterIDMismatch, "this host's etcd still serves the old cluster %x with a quorum, but "+
			"cluster %x reports that it has replaced the old one: stop etcd by hand on the hosts of the cluster "+
			"that you give up",
			r.Old, r.New), true
	case v.Data.State == DataUnknown:
		return wait(DataNotKnown, "%s", v.Data.unread()), true
	case v.Unit.State == UnitUnknown || v.Unit.State == UnitMissing || !v.Self.Drives:
		return blockedBy(v, vetoUnitUnusable), true
	case r.Survivor:
		return surviveAlone(v), true
	}
	return layAside(v), true
}

// keepData ends a plan that was given up: etcd starts on its old data, with or without a quorum. On a host without
// data, etcd does not start.
func keepData(v View) Decision {
	r := v.Recovery
	failed := v.Unit.State == UnitFailed && v.Unit.SinceStart >= v.Limits.StartRetry
	switch {
	case r.Copy.State == CopyRuns:
		return wait(Recovering, "the plan was given up; the copy that is being made still has etcd's data open")
	case v.Data.State == DataUnknown:
		return wait(DataNotKnown, "%s", v.Data.unread())
	case v.Unit.State == UnitDeactivating:
		return wait(Stopping, "etcd is stopping")
	case r.isOldData(v.Data) && (v.Unit.State == UnitInactive || failed):
		return do(Step{Kind: StepStartUnit, Why: "the plan was given up"})
	}
	return do(Step{Kind: StepEndRecovery, Outcome: RecoveryGivenUp})
}

// surviveAlone creates a single-member cluster from a copy of this host's data. When the copy is complete, it replaces
// the old data.
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
		return wait(Recovering, "the data of the new cluster is being built")
	case CopyComplete:
		return do(Step{Kind: StepPlaceCopy})
	case CopyFailed:
		if v.Recovery.tooSoonToRetry(v) {
			return wait(Recovering, "the copy failed and will be retried soon: %s", r.Copy.Text)
		}
	case CopyNone:
	}
	// After an interrupted move the data is unreadable or absent; the next step then finds the complete copy.
	if v.Data.State == DataMember && !r.isOldData(v.Data) {
		return wait(DataUnusable, "the data belongs to cluster %x, but the plan was made for %x", v.Data.ClusterID,
			r.Old)
	}
	return do(Step{Kind: StepCopyData})
}

func (r *Recovery) tooSoonToRetry(v View) bool { return v.CopiedFor < v.Limits.StartRetry }

// layAside moves this host's old data aside once the recovered cluster answers; the ordinary join follows. Until then
// operators might need this data, in case the survivor's data is unusable. A host without data waits as well:
// otherwise, if the plan were given up, the host would be recorded as part of a cluster that is never created.
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

// AgainstRecovery returns why no plan may be put in force on this host, or nil. pinned is the cluster ID in its
// configuration, or empty. Package recovery checks whether the plan fits this host.
func AgainstRecovery(v View, pinned string) *Refusal {
	switch {
	case v.Self.Mode != Manage:
		return conflicts(ModeObserve, "quorumd only observes on this host", "set mode: manage and reload quorumd")
	case pinned != "":
		return conflicts("",
			"cluster.id is "+pinned+", but the recovered cluster has a different ID",
			"remove cluster.id from quorumd.yaml on every host, reload quorumd, and apply the plan again")
	}
	return nil
}

// AgainstSnapshot returns why this host cannot restore a snapshot, or nil. fetched reports whether the host must fetch
// the snapshot, and hasStore whether its configuration names a backup store.
func AgainstSnapshot(fetched, hasStore bool) *Refusal {
	if !fetched || hasStore {
		return nil
	}
	return conflicts("", "this host is to restore a snapshot, but its configuration names no backup store",
		"set backup.store.directory or backup.store.s3, reload quorumd, and apply the plan again")
}

// AgainstPlan returns why a different plan may not be put in force in addition to this one, or nil.
func (r *Recovery) AgainstPlan(plan string) *Refusal {
	if r == nil || r.Plan == plan {
		return nil
	}
	return conflicts("", "plan "+r.Plan+" is already in force here, applied by "+r.By, "quorumctl recover status")
}

// AgainstGivingUp returns why the plan may not be given up, or nil. moved reports whether this host has begun to move
// its old data.
func (r *Recovery) AgainstGivingUp(moved bool) *Refusal {
	switch {
	case r == nil:
		return conflicts("", "none is in force on this host", "quorumctl recover status")
	case moved:
		return conflicts("", "this host has begun to move its old data",
			"let it finish: quorumctl recover status; the old data is kept next to the new, see QUORUM LOSS in "+
				"quorumctl(1)")
	}
	return nil
}

// A host carries out a plan that it has applied, even if operators make a different plan meanwhile. If the survivor of
// the first plan was only switched off and comes back, two clusters serve.

// planInForce reports a host that is the survivor of an earlier plan and has not given it up.
func planInForce(all []HostRemains, _ RecoveryChoice) (text, about string) {
	for _, r := range all {
		for _, p := range r.Plans {
			if p.Survivor == r.Host && !p.GivenUp {
				return fmt.Sprintf("%s is the survivor of plan %s, which is still in force there", r.Host, p.ID), r.Host
			}
		}
	}
	return "", ""
}

// planElsewhere returns why the survivor of a plan that a host received may still carry out the plan: no collected
// facts show that the survivor gave it up, and the operator has not stated that the survivor stays off.
func planElsewhere(all []HostRemains, w RecoveryChoice) (text, about string) {
	for _, r := range all {
		for _, p := range r.Plans {
			if gaveUp(all, p) || slices.Contains(w.KeptOff, p.Survivor) {
				continue
			}
			text = fmt.Sprintf("%s received plan %s with survivor %s, and no collected facts show that %s gave it "+
				"up", r.Host, p.ID, p.Survivor, p.Survivor)
			return text, strings.Join(append(slices.Clone(w.KeptOff), p.Survivor), ",")
		}
	}
	return "", ""
}

// gaveUp reports whether the facts of a plan's survivor show that the survivor does not carry out the plan: they list
// the plan as given up, or they were collected after another host received it. Older facts may precede the application
// of the plan on the survivor. A host lists only its last two plans, so an older plan is missing even if it was given
// up.
func gaveUp(all []HostRemains, p KnownPlan) bool {
	return slices.ContainsFunc(all, func(o HostRemains) bool {
		ended := slices.ContainsFunc(o.Plans, func(q KnownPlan) bool { return q.ID == p.ID && q.GivenUp })
		return o.Host == p.Survivor && (ended || o.Age < p.Age)
	})
}

// MaxPlanAge is the maximum age of a plan when it is applied.
const MaxPlanAge = 24 * time.Hour

// OfferedPlan is a plan that an operator applies on a host.
type OfferedPlan struct {
	ID      string
	Cluster string        // the cluster's name
	Age     time.Duration // the age of the plan; negative if this host's clock is behind
	Own     *HostRemains  // the facts of this host in the plan; nil if there are none
	Now     HostRemains   // the current facts of this host
}

// PlanRefused returns why this host does not apply a plan; empty if it does.
func PlanRefused(p OfferedPlan) string {
	for _, r := range planRefusals() {
		if text := r.check(p); text != "" {
			return text
		}
	}
	return ""
}

// planRefusal declares a reason to refuse a plan. The remedy is the same for all: collect the facts again and make a
// new plan.
type planRefusal struct {
	name  string
	check func(p OfferedPlan) string
}

// planRefusals returns all reasons in the order in which they are checked: each check may rely on those before it.
func planRefusals() []planRefusal {
	return []planRefusal{
		{"another cluster's plan", func(p OfferedPlan) string {
			return unless(p.Now.Cluster == p.Cluster, "it is for cluster %q, but this host belongs to %q", p.Cluster,
				p.Now.Cluster)
		}},
		{"a host outside the plan", func(p OfferedPlan) string {
			return unless(p.Own != nil, "it was made without facts of %s", p.Now.Host)
		}},
		{"a quorum is seen", func(p OfferedPlan) string {
			return unless(!p.Now.Quorum, "%s sees a quorum, so there is nothing to recover", p.Now.Host)
		}},
		{"too old", func(p OfferedPlan) string {
			return unless(p.Age <= MaxPlanAge, "it was made %s ago; the limit is %s", durationfmt.Seconds(p.Age),
				durationfmt.Text(MaxPlanAge))
		}},
		{"from the future", func(p OfferedPlan) string {
			return unless(p.Age >= -MaxClockAhead, "by this host's clock it will be made in %s; compare the clocks of "+
				"the hosts", durationfmt.Seconds(-p.Age))
		}},
		{"another host", func(p OfferedPlan) string {
			return unless(p.Own.HostID == p.Now.HostID, "the facts describe %s (%s), but this host is %s (%s)",
				p.Own.Host, p.Own.HostID, p.Now.Host, p.Now.HostID)
		}},
		{"another cluster's facts", func(p OfferedPlan) string {
			return unless(p.Own.Cluster == p.Now.Cluster, "the facts describe cluster %q, but this host belongs to %q",
				p.Own.Cluster, p.Now.Cluster)
		}},
		{"other data", func(p OfferedPlan) string {
			same := p.Own.Empty == p.Now.Empty && p.Own.ClusterID == p.Now.ClusterID && p.Own.MemberID == p.Now.MemberID
			return unless(same, "the data directory is not the one that the facts describe")
		}},
		{"another last entry", func(p OfferedPlan) string {
			return unless(p.Own.Term == p.Now.Term && p.Own.Index == p.Now.Index,
				"the last log entry is %d of term %d, but in the facts it is %d of term %d", p.Now.Index, p.Now.Term,
				p.Own.Index, p.Own.Term)
		}},
		// another host may be carrying out the other plan
		{"another plan since", func(p OfferedPlan) string {
			for _, known := range p.Now.Plans {
				before := slices.ContainsFunc(p.Own.Plans, func(t KnownPlan) bool { return t.ID == known.ID })
				if known.ID != p.ID && !before {
					return fmt.Sprintf("%s received plan %s with survivor %s after its facts were collected",
						p.Now.Host, known.ID, known.Survivor)
				}
			}
			return ""
		}},
	}
}

func unless(holds bool, format string, args ...any) string {
	if holds {
		return ""
	}
	return fmt.Sprintf(format, args...)
}

// Successor holds the facts that show whether the answering cluster was recovered without this host.
type Successor struct {
	Old, New uint64 // the cluster reports that New replaced Old; 0 if it reports nothing
	Answers  uint64 // the cluster that answers; 0 if none does
	Noted    uint64 // the cluster that this host belongs to, as recorded on its disk; 0 for none
	Pinned   bool   // this host's configuration pins the cluster ID
	Planned  bool   // a plan is in force here
}

// Late reports whether this host is late to a recovery: the answering cluster reports that it replaced this host's
// cluster. It is false for a host with a plan, which follows the plan, and for one with a pinned cluster ID, which
// operators must change first.
func (s Successor) Late() bool {
	return !s.Planned && !s.Pinned && s.Answers != 0 && s.Answers == s.New && s.Noted != 0 && s.Noted == s.Old
}

// RecoveryNote names the record to write when a plan ends.
type RecoveryNote uint8

// The notes. The zero value records nothing: the plan was not carried out.
const (
	RecoveryLeavesNothing RecoveryNote = iota
	RecoveryAnnounced                  // write to etcd, for late hosts, that this cluster replaced the old one
	RecoveryJoins                      // write to disk that this host belongs to the new cluster, not yet as a member
)

// noteRecovery returns the record to write with the step that ends a plan.
func noteRecovery(v View, s Step) RecoveryNote {
	switch {
	case s.Kind != StepEndRecovery || s.Outcome != Recovered:
		return RecoveryLeavesNothing
	case v.Recovery.Survivor:
		return RecoveryAnnounced
	}
	return RecoveryJoins
}
