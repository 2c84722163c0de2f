// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"fmt"
	"slices"

	"github.com/quorumd/quorumd/agent/durationfmt"
	"github.com/quorumd/quorumd/health"
)

// Removal is what a person has asked on this host: that a member is taken out of etcd for good. It lies on the host's
// own disk and ends by itself.
type Removal struct {
	MemberID   uint64
	Name       string // of the member, for people
	By, Reason string
	Live       bool // also a voter that answers
	Over       bool // its time is over: it does not begin any more
	Begun      bool // its operation was, or may have been: it begins no second time
}

// removal begins the operation that takes a member out, if nothing is against it. It is asked for where a member is
// lost, and goes before what that keeps waiting. Whatever else this host has to do meanwhile, it does.
func removal(v View) (Decision, bool) {
	r := v.Removal
	if v.Asked != nil && v.Asked.Noted { // its own operation is recorded again first
		return Decision{}, false
	}
	if r == nil || r.Over || r.Begun || v.Op != nil && v.Op.Host == v.Self.ID || !v.Cluster.Reachable || v.foreign() ||
		!v.listed(r.MemberID) {
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

// RemovalNote is what this host's disk is to say of the removal that it was asked for.
type RemovalNote struct {
	Ends bool
	Code ReasonCode // with which it ends
	Text string
}

// noteRemoval ends what was asked when the member is gone, when its operation is and the member is not, or when its
// time is over before it has begun. While it is not seen whether its operation is in flight it stands.
func noteRemoval(v View) RemovalNote {
	r := v.Removal
	switch {
	case r == nil || v.owns(KindRemove) || !v.Cluster.Reachable || !v.Cluster.Fresh || v.cannotRead(RecordOp):
		return RemovalNote{}
	case !v.foreign() && !v.listed(r.MemberID):
		return RemovalNote{true, Removed, "it is no longer in the member list"}
	case r.Begun:
		return RemovalNote{
			true, Withdrawn, "its operation was released, or deleted, or ended by another host, or etcd did not say " +
				"whether it had begun",
		}
	case r.Over:
		return RemovalNote{true, Withdrawn, "it expired before it could begin" + lastAgainst(v)}
	}
	return RemovalNote{}
}

// lastAgainst tells what still keeps a removal from beginning whose time is over.
func lastAgainst(v View) string {
	r := *v.Removal
	r.Over, v.Removal = false, &r
	if d := held(v); len(d.Reasons) > 0 {
		return fmt.Sprintf("; %s: %s", d.Reasons[0].Code, d.Reasons[0].Text)
	}
	return ""
}

// removalVetoes declares what keeps a member from being removed, in the order in which they are named.
func removalVetoes() []veto {
	return []veto{
		vetoHostConflict(),
		vetoCorrupt(),
		vetoRemovesLive(),
		vetoRemovesEarly(),
		vetoRemovalAtRisk(),
		vetoOperationInFlight(),
		vetoLockHeld(),
		vetoListUnsettled(),
	}
}

// AgainstRemovals says why this host is to be asked for no removal now, or gives nil.
func AgainstRemovals(v View) *Refusal {
	switch {
	case v.Self.Mode != Manage:
		return conflicts(ModeObserve, "quorumd only observes on this host",
			"ask on a host whose mode is manage, or set it here and restart quorumd")
	case !v.Cluster.Reachable || v.foreign():
		return &Refusal{
			NotNow, ClusterUnreachable, "the cluster cannot be reached from here",
			"quorumctl explain; without a quorum etcd removes no member",
		}
	case v.Pause != nil:
		return conflicts(Paused, "the cluster is paused by "+v.Pause.By+": "+v.Pause.Reason,
			"quorumctl resume, and ask again")
	}
	return nil
}

// AgainstRemoval says why this host is not to be asked for a removal, or gives nil. A person is told at once what no
// waiting ends: it is this host's own member, the voter answers, or the others would have no quorum without it; and
// that a snapshot is wanted first, unless it is to go bare.
func AgainstRemoval(v View, r Removal, bare bool) *Refusal {
	if m, _ := v.memberByID(r.MemberID); m.PeerURL == v.Self.PeerURL {
		return conflicts("", "it is this host's own member", "ask on another host")
	}
	v.Removal = &r
	if reason, holds := vetoed(v, vetoRemovesLive, vetoRemovalAtRisk); holds {
		return conflicts(reason.Code, reason.Text, reason.Code.Info().Remedy)
	}
	if text, wants := removalWants(v, r); wants && !bare {
		return conflicts(SnapshotFirst, text, "quorumctl snapshot save, and ask again; or --without-snapshot")
	}
	return nil
}

// Against says why a removal that stands makes no way for that of another member, or gives nil: only one that is out of
// time, and whose operation is not in flight, does. Of the same member it is renewed.
func (r Removal) Against(member uint64, runs bool) *Refusal {
	if r.MemberID == member || r.Over && !runs {
		return nil
	}
	return conflicts("",
		fmt.Sprintf("the removal of %s (%x) was already requested here, by %s", r.Name, r.MemberID, r.By),
		"wait for it, or ask on another host")
}

func (v View) memberByID(id uint64) (Member, bool) {
	i := slices.IndexFunc(v.Cluster.Members, func(m Member) bool { return m.ID == id })
	if i < 0 {
		return Member{}, false
	}
	return v.Cluster.Members[i], true
}

// DomainOf gives the failure domain of a member's host, as that was last heard of; empty when it is not known.
func (v View) DomainOf(id uint64) string {
	m, _ := v.memberByID(id)
	return m.Domain
}

// removesLive tells whether a voter that answers would be removed, and nobody has said that it may be.
func removesLive(v View) (string, bool) {
	m, listed := v.memberByID(v.Removal.MemberID)
	if !listed || m.Learner || v.Removal.Live || !m.Live {
		return "", false
	}
	return "voter " + m.label() + " answers", true
}

// removesEarly tells of a voter that has only just fallen silent, and may be starting again; or whose silence this
// agent has only just begun to watch, since it was started itself.
func removesEarly(v View) (string, bool) {
	m, listed := v.memberByID(v.Removal.MemberID)
	if !listed || m.Learner || v.Removal.Live || m.Live || m.DownFor >= v.Limits.LockTTL {
		return "", false
	}
	return fmt.Sprintf("voter %s has not answered for %s; it counts as gone after %s", m.label(),
		durationfmt.Tenths(m.DownFor), durationfmt.Text(v.Limits.LockTTL)), true
}

// removalAtRisk tells whether the voters that are left would have no quorum of their own, or lose their spare failure
// while another one is down.
func removalAtRisk(v View) (string, bool) { return v.lossAtRisk(v.Removal.MemberID, true) }

// lossAtRisk tells that of a member. With well, where a live one is to go, the others must also be known to be well.
func (v View) lossAtRisk(id uint64, well bool) (string, bool) {
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
		case well && m.Live && v.doubt(other, health.Maintenance) != "":
			why = "voter " + other.label() + " " + v.doubt(other, health.Maintenance)
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
	return fmt.Sprintf("of the %d voters that are left %d answer, and %d must: %s", voters-1, others, Quorum(voters-1),
		why), true
}

// listUnsettled tells whether the member list has changed just now.
func listUnsettled(v View) (string, bool) {
	left := v.Limits.Settle - v.Cluster.StableFor
	if left <= 0 {
		return "", false
	}
	return fmt.Sprintf("%s of the settle period of %s remain",
		durationfmt.Tenths(left), durationfmt.Text(v.Limits.Settle)), true
}

// removals is the operation that takes a member out for good. The host that was asked carries it on. Another ends it
// when the member is gone, or etcd was not told yet. Any other is for its own host alone, which knows from its disk
// that a person has asked for it: whoever can write the record could else have members removed.
func removals() operation {
	return operation{
		kind:   KindRemove,
		noun:   "removal",
		phases: []OpPhase{PhaseBegun, PhaseRemoving},
		out:    func(op *Op) uint64 { return op.MemberID },
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

// carryRemoval takes the member out. Once etcd may have been told, nobody can take that back: it is told again until
// the member is gone, and nothing else begins before. Until then what has changed meanwhile ends it.
func carryRemoval(v View) Decision {
	m, listed := v.memberByID(v.Op.MemberID)
	asked := v.Removal
	switch {
	case !listed:
		return do(Step{Kind: StepEndOp, Outcome: Removed})
	case v.Op.Host != v.Self.ID:
		return do(Step{
			Kind: StepEndOp, Outcome: Orphaned,
			Why: "the agent of " + v.Op.HostName + " is gone, and the removal was not sent to etcd yet",
		})
	case asked == nil || asked.MemberID != m.ID:
		return do(Step{
			Kind: StepEndOp, Outcome: Disowned,
			Why: "this host has no request to remove member " + m.label(),
		})
	case v.Op.Phase == PhaseRemoving:
		if text, holds := v.lossAtRisk(m.ID, false); holds {
			return wait(QuorumAtRisk, "%s", text)
		}
		return do(Step{Kind: StepRemoveMember, MemberID: m.ID, Why: asked.Reason})
	case asked.Over:
		return do(Step{Kind: StepEndOp, Outcome: Withdrawn})
	}
	if r, holds := vetoed(v, vetoRemovesLive, vetoRemovalAtRisk); holds {
		return do(Step{Kind: StepEndOp, Outcome: r.Code, Why: r.Text})
	}
	// An agent that was started again meanwhile counts the silence anew. That ends nothing: a voter's return does.
	if r, holds := vetoed(v, vetoRemovesEarly); holds {
		return Decision{Reasons: []Reason{r}}
	}
	if best, found := bestVoter(v, m.PeerURL); found && m.Leader && !m.Learner {
		if v.Failed.Kind == StepMoveLeader && v.Op.WrittenFor > v.Limits.HandOver {
			return do(Step{Kind: StepEndOp, Outcome: LeaderStays, Why: v.Failed.Text})
		}
		return do(Step{Kind: StepMoveLeader, MemberID: best.ID, Why: "to " + best.label()})
	}
	return do(Step{Kind: StepSetPhase, Phase: PhaseRemoving, MemberID: m.ID})
}
