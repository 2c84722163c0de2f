// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/quorumd/quorumd/agent/durationfmt"
	"github.com/quorumd/quorumd/health"
)

// Removal is an operator's request on this host to remove a member from etcd for good. The request is stored on this
// host's disk and ends by itself.
type Removal struct {
	MemberID   uint64
	Name       string // the member's name, for messages
	By, Reason string
	Live       bool // the voter may be removed even if it answers
	Expired    bool // it is too late for the removal to begin
	Begun      bool // its operation has begun, or may have; it does not begin again
	// Retires is the ID of the host whose retirement the removal belongs to; empty if it belongs to none. AskedFor is
	// the time since the request, by this host's wall clock.
	Retires  string
	AskedFor time.Duration
}

// undone reports whether the retirement to which the removal belongs was undone. A view from before the request does
// not show the retirement yet.
func (r Removal) undone(v View) bool {
	return r.Retires != "" && r.AskedFor >= v.Limits.Settle && !v.isRetired(r.Retires)
}

// removal begins the requested operation that removes a member, unless a veto applies. Operators request it when a
// member is lost, so it precedes everything that waits for the lost member. While a veto applies, this host takes its
// other steps.
func removal(v View) (Decision, bool) {
	r := v.Removal
	if v.Asked != nil && v.Asked.RecordDeleted { // this host first records its own operation again
		return Decision{}, false
	}
	if r == nil || r.Expired || r.Begun || r.undone(v) || v.Op != nil && v.Op.Host == v.Self.ID ||
		!v.Cluster.Reachable || v.foreign() || !v.listed(r.MemberID) {
		return Decision{}, false
	}
	reasons := against(v, removalVetoes())
	switch {
	case len(reasons) == 0 && v.Lock.Mine:
		return do(Step{Kind: StepBeginRemoval, MemberID: r.MemberID, Why: r.Reason}), true
	case len(reasons) == 0:
		return do(Step{Kind: StepTakeLock, Why: fmt.Sprintf("to remove member %x", r.MemberID)}), true
	}
	for _, part := range []func(View) (Decision, bool){cycle, othersOperation, ownUnit, leftover, join} {
		if d, decided := part(v); decided && d.Step.Kind != StepNone {
			d.Reasons = append(d.Reasons, reasons...)
			return d, true
		}
	}
	if v.Lock.Mine && v.Op == nil {
		return do(Step{Kind: StepReleaseLock, Why: reasons[0].Text}), true
	}
	return Decision{Reasons: reasons}, true
}

// RemovalNote states whether this host's removal request ends, and with which result.
type RemovalNote struct {
	Ends bool
	Code ReasonCode // the result
	Text string
}

// noteRemoval ends the request when the member is no longer listed, when its operation has begun, or may have, but
// is not in flight, when the retirement that it belongs to was undone, or when the request expires before the
// operation has begun. While the operation's state is unknown, the request stays.
func noteRemoval(v View) RemovalNote {
	r := v.Removal
	switch {
	case r == nil || v.owns(KindRemove) || !v.Cluster.Reachable || !v.Cluster.Fresh || v.cannotRead(RecordOp):
		return RemovalNote{}
	case !v.foreign() && !v.listed(r.MemberID):
		return RemovalNote{true, Removed, "it is no longer in the member list"}
	case r.Begun:
		return RemovalNote{
			true, Cancelled, "its operation was released, deleted or ended by another host, or etcd did not confirm " +
				"that it had begun",
		}
	case r.undone(v):
		return RemovalNote{true, Cancelled, "the retirement of its host was undone"}
	case r.Expired:
		return RemovalNote{true, Cancelled, "it expired before it could begin" + whyNeverBegun(v)}
	}
	return RemovalNote{}
}

// whyNeverBegun explains why an expired removal never began.
func whyNeverBegun(v View) string {
	r := *v.Removal
	r.Expired, v.Removal = false, &r
	if d := decideAllowed(v); len(d.Reasons) > 0 {
		return fmt.Sprintf("; %s: %s", d.Reasons[0].Code, d.Reasons[0].Text)
	}
	return ""
}

// removalVetoes returns the vetoes against removing a member on request, in the order in which they are reported.
func removalVetoes() []veto {
	return []veto{
		vetoHostConflict(),
		vetoCorruptAlarm(),
		vetoRemovesLive(),
		vetoRemovesEarly(),
		vetoRemovalAtRisk(),
		vetoLastRemoved(),
		vetoOperationInFlight(),
		vetoLockHeld(),
		vetoListUnsettled(),
	}
}

// AgainstRemovals returns why this host accepts no removal now, or nil.
func AgainstRemovals(v View) *Refusal {
	switch {
	case v.Self.Mode != Manage:
		return conflicts(ModeObserve, "quorumd only observes on this host",
			"use a host in mode manage, or set mode: manage here and reload quorumd")
	case !v.Cluster.Reachable || v.foreign():
		return &Refusal{
			NotNow, ClusterUnreachable, "the cluster cannot be reached from here",
			"quorumctl explain shows why; without a quorum, etcd accepts no change",
		}
	case v.Pause != nil:
		return conflicts(Paused, "the cluster is paused by "+v.Pause.By+": "+v.Pause.Reason,
			"quorumctl resume, and try again")
	}
	return nil
}

// AgainstRemoval returns why this host rejects a removal, or nil. It rejects a removal at once if waiting would not
// help: the member is this host's own, the voter answers and the operator has not permitted that, the removal would put
// the quorum at risk, an upgrade must be resumed or aborted first, or a snapshot is required first and the operator has
// not waived it.
func AgainstRemoval(v View, r Removal, withoutSnapshot bool) *Refusal {
	if m, _ := v.memberByID(r.MemberID); m.PeerURL == v.Self.PeerURL {
		return conflicts("", "it is this host's own member", "run the command on another host")
	}
	v.Removal = &r
	if reason, holds := vetoed(v, vetoRemovesLive, vetoRemovalAtRisk); holds {
		return conflicts(reason.Code, reason.Text, reason.Code.Info().Remedy)
	}
	if text, last := lastRemoved(v); last {
		return conflicts(UpgradeHeld, text, "decide first: quorumctl upgrade resume; or quorumctl upgrade abort")
	}
	if text, wants := removalWants(v, r); wants && !withoutSnapshot {
		return conflicts(SnapshotFirst, text, "quorumctl snapshot save, and try again; or --without-snapshot")
	}
	return nil
}

// Against returns why a new removal request may not replace this one, or nil. A request for the same member renews this
// one; a request for a different member may replace this one if it has expired and its operation is not in flight.
func (r Removal) Against(member uint64, inFlight bool) *Refusal {
	if r.MemberID == member || r.Expired && !inFlight {
		return nil
	}
	return conflicts("",
		fmt.Sprintf("the removal of %s (%x) was already requested here, by %s", r.Name, r.MemberID, r.By),
		"wait for it, or run the command on another host")
}

func (v View) memberByID(id uint64) (Member, bool) {
	i := slices.IndexFunc(v.Cluster.Members, func(m Member) bool { return m.ID == id })
	if i < 0 {
		return Member{}, false
	}
	return v.Cluster.Members[i], true
}

// DomainOf returns the failure domain of a member's host, as last reported; empty if unknown.
func (v View) DomainOf(id uint64) string {
	m, _ := v.memberByID(id)
	return m.Domain
}

// removesLive reports whether a voter that answers would be removed without permission.
func removesLive(v View) (string, bool) {
	m, listed := v.memberByID(v.Removal.MemberID)
	if !listed || m.Learner || v.Removal.Live || !m.Live {
		return "", false
	}
	return "voter " + m.label() + " answers", true
}

// removesEarly reports whether the voter has been silent too briefly to count as gone: it may be restarting, or this
// agent has just started and has not observed the voter for long enough.
func removesEarly(v View) (string, bool) {
	m, listed := v.memberByID(v.Removal.MemberID)
	if !listed || m.Learner || v.Removal.Live || m.Live || m.DownFor >= v.Limits.LockTTL {
		return "", false
	}
	return fmt.Sprintf("voter %s has not answered for %s; it counts as gone after %s", m.label(),
		durationfmt.Tenths(m.DownFor), durationfmt.Text(v.Limits.LockTTL)), true
}

// removalAtRisk reports whether too few of the remaining voters are live. If the voter to be removed answers, all of
// them must be live and known to be healthy; otherwise a quorum of them must be live.
func removalAtRisk(v View) (string, bool) { return v.lossAtRisk(v.Removal.MemberID, true) }

// lossAtRisk is removalAtRisk for any member. If healthy is set, the removal of a live member also requires that the
// other voters are known to be healthy.
func (v View) lossAtRisk(id uint64, healthy bool) (string, bool) {
	m, listed := v.memberByID(id)
	if !listed || m.Learner {
		return "", false
	}
	voters, _ := v.Cluster.Counts()
	others, why := 0, ""
	for other := range v.Cluster.voters() {
		switch {
		case other.ID == m.ID:
		case !other.Live:
			why = "voter " + other.label() + " does not answer a linearizable read"
		case healthy && m.Live && v.notProven(other, health.Maintenance) != "":
			why = "voter " + other.label() + " " + v.notProven(other, health.Maintenance)
		default:
			others++
		}
	}
	switch {
	case mayRemove(voters, others, m.Live):
		return "", false
	case voters == 1:
		return spareText(voters), true
	case m.Live:
		return fmt.Sprintf("voter %s answers, and is needed: %s", m.label(), why), true
	}
	return fmt.Sprintf("%d of the %d remaining voters answer, but %d must: %s", others, voters-1, Quorum(voters-1),
		why), true
}

// listUnsettled reports whether the member list has changed within the settle period.
func listUnsettled(v View) (string, bool) {
	left := v.Limits.Settle - v.Cluster.StableFor
	if left <= 0 {
		return "", false
	}
	return fmt.Sprintf("%s of the settle period of %s remain",
		durationfmt.Tenths(left), durationfmt.Text(v.Limits.Settle)), true
}

// removals declares the operation that removes a member for good. The host that received the request carries it out. If
// its agent is gone, another host ends the operation, provided that the member is no longer listed or that the removal
// has not been sent to etcd. Otherwise only the operation's own host continues it, because only its disk holds the
// request, and a record in etcd alone must not suffice to remove a member.
func removals() operation {
	return operation{
		kind:    KindRemove,
		noun:    "removal",
		byHost:  true,
		phases:  []OpPhase{PhaseBegun, PhaseRemoving},
		removes: func(op *Op) uint64 { return op.MemberID },
		title: func(t OperationTitle) string {
			return fmt.Sprintf("removal of member %s (%s) by %s", t.Target, t.Member, t.HostName)
		},
		carry: func(v View) Decision {
			if d, decided := underLock(v, "to continue the removal"); decided {
				return d
			}
			return carryRemoval(v)
		},
		orphan: carryRemoval,
		ownerOnly: func(v View) bool {
			_, listed := v.memberByID(v.Op.MemberID)
			return listed && v.Op.Phase == PhaseRemoving
		},
	}
}

// carryRemoval removes the member. Without a request on this host's disk, it ends the operation. Once the removal may
// have been sent to etcd, it cannot be cancelled: the host repeats the removal until the member is gone, except while
// that puts the quorum at risk, and no other operation begins until then. Before the removal is sent, changed
// conditions end the operation.
func carryRemoval(v View) Decision {
	m, listed := v.memberByID(v.Op.MemberID)
	asked := v.Removal
	switch {
	case !listed:
		return do(Step{Kind: StepEndOp, Outcome: Removed})
	case v.Op.Host != v.Self.ID:
		return do(Step{
			Kind: StepEndOp, Outcome: Orphaned,
			Why: "the agent of " + v.Op.HostName + " is gone, and the removal has not been sent to etcd yet",
		})
	case asked == nil || asked.MemberID != m.ID:
		return do(Step{
			Kind: StepEndOp, Outcome: OperationRejected,
			Why: "this host has no request to remove member " + m.label(),
		})
	case v.Op.Phase == PhaseRemoving:
		if text, holds := v.lossAtRisk(m.ID, false); holds {
			return wait(QuorumAtRisk, "%s", text)
		}
		return do(Step{Kind: StepRemoveMember, MemberID: m.ID, Why: asked.Reason})
	case asked.Expired, asked.undone(v):
		return do(Step{Kind: StepEndOp, Outcome: Cancelled})
	}
	if r, holds := vetoed(v, vetoRemovesLive, vetoRemovalAtRisk, vetoLastRemoved); holds {
		return do(Step{Kind: StepEndOp, Outcome: r.Code, Why: r.Text})
	}
	// An agent that has restarted since the operation began counts the voter's silence from zero. Such a restart is no
	// reason to end the operation.
	if r, holds := vetoed(v, vetoRemovesEarly); holds {
		return Decision{Reasons: []Reason{r}}
	}
	if best, found := bestVoter(v, m.PeerURL); found && m.Leader && !m.Learner {
		if v.Failed.Kind == StepTransferLeadership && v.Op.WrittenFor > v.Limits.TransferTimeout {
			return do(Step{Kind: StepEndOp, Outcome: LeadershipNotTransferred, Why: v.Failed.Text})
		}
		return do(Step{Kind: StepTransferLeadership, MemberID: best.ID, Why: "to " + best.label()})
	}
	return do(Step{Kind: StepSetPhase, Phase: PhaseRemoving, MemberID: m.ID})
}

// MemberNamed returns the member that matches a name or an ID, or a refusal if the name is ambiguous or unknown.
// removed reports that this host has already removed a member with that name. In that case an unknown name is no error,
// and MemberNamed returns the zero Member.
func MemberNamed(v View, name string, removed bool) (Member, *Refusal) {
	var found []Member
	var names []string
	for _, m := range v.Cluster.Members {
		id := fmt.Sprintf("%x", m.ID)
		names = append(names, fmt.Sprintf("%s (%s)", cmp.Or(m.Name, "never started"), id))
		if id == name || m.Name != "" && m.Name == name {
			found = append(found, m)
		}
	}
	there := "the members are " + strings.Join(names, ", ")
	switch {
	case len(found) == 1:
		return found[0], nil
	case len(found) > 1:
		return Member{}, &Refusal{NoSuch, "", "several members have that name", "name one by its ID: " + there}
	case removed:
		return Member{}, nil
	}
	return Member{}, &Refusal{NoSuch, "", "no member has that name or ID", there}
}
