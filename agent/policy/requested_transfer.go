// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"fmt"
	"slices"

	"github.com/quorumd/quorumd/agent/durationfmt"
	"github.com/quorumd/quorumd/health"
)

// An operator asks any host's agent to transfer leadership to a voter. The agent takes the lock, so that no operation
// begins meanwhile, asks the leader for the transfer, and releases the lock. It keeps the request in memory for a short
// time; if the request expires, the operator repeats it. There is no operation record, because nothing is left to
// continue or to undo if the agent dies.
//
// A requested transfer must not make anything worse, so the voter must be one to which an unhealthy leader would
// transfer leadership. A CORRUPT alarm is no veto: a repair may begin by moving leadership away from a member.

// TransferRequest is an operator's request to this host's agent to transfer leadership.
type TransferRequest struct {
	MemberID   uint64
	By, Reason string
	Expired    bool // the request is too old to be carried out
}

// requestedTransfer transfers leadership as requested, unless a veto applies. While a veto applies, this host takes its
// other steps.
func requestedTransfer(v View) (Decision, bool) {
	r := v.TransferAsked
	if r == nil || r.Expired || !v.Cluster.Reachable || v.foreign() {
		return Decision{}, false
	}
	to, listed := v.memberByID(r.MemberID)
	if !listed || to.Learner || to.Leader {
		return Decision{}, false
	}
	if _, waits := transferWaits(v, to); waits {
		return Decision{}, false
	}
	why := "to " + to.label() + ", requested by " + r.By
	if !v.Lock.Mine {
		return do(Step{Kind: StepTakeLock, Why: "to transfer leadership " + why}), true
	}
	return do(Step{Kind: StepTransferLeadership, MemberID: to.ID, Why: why}), true
}

// transferVetoes returns the vetoes against any requested transfer, in the order in which they are reported.
// againstLeader then checks the requested voter.
func transferVetoes() []veto {
	return []veto{
		vetoIdentityConflict(),
		vetoOperationRecorded(),
		vetoOperationInFlight(),
		vetoLockHeld(),
	}
}

// operationRecorded reports whether any operation is in flight, this host's own included.
func operationRecorded(v View) (string, bool) {
	if v.Op == nil {
		return "", false
	}
	return fmt.Sprintf("%s is in phase %s", v.Op.label(), v.Op.Phase), true
}

// transferWaits returns why leadership is not transferred to a voter on request now, and whether there is a reason.
func transferWaits(v View, to Member) (Reason, bool) {
	if v.Self.Mode != Manage {
		return Reason{ModeObserve, "quorumd only observes on this host"}, true
	}
	if v.Pause != nil {
		return paused(v.Pause), true
	}
	if reasons := against(v, transferVetoes()); len(reasons) > 0 {
		return reasons[0], true
	}
	if r := v.againstLeader(to); r != nil {
		return Reason{r.Code, "voter " + to.label() + " " + r.Text}, true
	}
	return Reason{}, false
}

// againstLeader returns why a voter should not become the leader, or nil. A voter that will be taken down would have to
// transfer leadership again.
func (v View) againstLeader(m Member) *Refusal {
	if doubt := v.notProven(m, health.Leadership); doubt != "" {
		code, hint := VoterUnhealthy, "on "+m.label()+", quorumctl health shows the findings; or name another voter"
		if !m.Live {
			code, hint = VoterNotLive, "on "+m.label()+", quorumctl explain shows what it waits for; or name another "+
				"voter"
		}
		return conflicts(code, doubt, hint)
	}
	if m.BehindFor >= v.Limits.Settle {
		return conflicts(LeadershipNotTransferred,
			fmt.Sprintf("has been at least %d entries behind the leader for %s", v.Limits.PromoteLag,
				durationfmt.Seconds(m.BehindFor)), "wait until it has caught up, or name another voter")
	}
	h, _ := v.hostOf(m)
	down := v.Queue != nil && slices.Contains(v.Queue.Down, h.ID)
	next := v.Rollout != nil && v.Rollout.Runs && RolloutNext(v, v.Rollout.Waiting) == h.ID
	switch {
	case blocks(h.Health, h.Ungated, health.Leadership): // notProven ignores WARM
		return conflicts(VoterUnhealthy, "is "+h.Health.String(),
			"on "+m.label()+", quorumctl health shows the findings; or name another voter")
	case h.InOperation, v.Op.names(h, m):
		return conflicts(OperationInFlight, "is in an operation", "wait for it: quorumctl operation show")
	case v.Removal != nil && v.Removal.MemberID == m.ID:
		return conflicts(OperationInFlight, "will be removed", "name another voter")
	case v.retires(m):
		return conflicts(HostRetired, "will leave, because its host is retired", "name another voter")
	case h.Wants != "", h.Waiting != "", down, next:
		return conflicts(LeadershipNotTransferred, "will be taken down",
			"wait until it is back, or name another voter")
	}
	return nil
}

// TransferNote states whether the request to transfer leadership ends, and with which result.
type TransferNote struct {
	Ends bool
	Code ReasonCode // empty if the voter leads
	Text string
}

// noteTransfer ends the request when the requested member leads or is not a voter, or when the request has expired.
func noteTransfer(v View) TransferNote {
	r := v.TransferAsked
	if r == nil {
		return TransferNote{}
	}
	m, listed := v.memberByID(r.MemberID)
	known := v.Cluster.Reachable && !v.foreign()
	switch {
	case known && listed && m.Leader:
		return TransferNote{true, "", m.label() + " leads"}
	case known && (!listed || m.Learner):
		return TransferNote{true, OperationRejected, fmt.Sprintf("member %x is not a voter", r.MemberID)}
	case r.Expired:
		why := TransferWaits(v)
		return TransferNote{true, why.Code, "it expired: " + why.Text}
	}
	return TransferNote{}
}

// TransferWaits returns what a request to transfer leadership waits for.
func TransferWaits(v View) Reason {
	switch {
	case v.foreign():
		return blockedBy(v, vetoIDMismatch).Reasons[0]
	case !v.Cluster.Reachable:
		return Reason{ClusterUnreachable, v.unreachable()}
	}
	m, _ := v.memberByID(v.TransferAsked.MemberID)
	if r, waits := transferWaits(v, m); waits {
		return r
	}
	if v.Failed.Kind == StepTransferLeadership || v.Failed.Kind == StepTakeLock {
		return Reason{LeadershipNotTransferred, v.Failed.Text}
	}
	return Reason{LeadershipNotTransferred, m.label() + " does not lead yet"}
}

// TransferTarget returns the voter to which leadership would be transferred: the named host's voter, or the best voter
// if the name is empty. It refuses a request that cannot be carried out now. A named voter that leads already is
// returned as well.
func TransferTarget(v View, host string) (Member, *Refusal) {
	if r := AgainstRemovals(v); r != nil { // checks the mode, the connection and a pause
		return Member{}, r
	}
	if host == "" {
		return v.bestLeader()
	}
	m, against := v.voterNamed(host)
	if against != nil || m.Leader {
		return m, against
	}
	return m, AgainstTransfer(v, m)
}

// AgainstTransfer returns why leadership cannot be transferred to a voter now, or nil.
func AgainstTransfer(v View, to Member) *Refusal {
	if v.Recovery != nil {
		return conflicts(Recovering, "a recovery plan is in progress", "quorumctl recover status")
	}
	if reasons := against(v, transferVetoes()); len(reasons) > 0 {
		hint := "wait for it, and try again: quorumctl operation show"
		if reasons[0].Code == HostConflict {
			hint = reasons[0].Code.Info().Remedy
		}
		return conflicts(reasons[0].Code, reasons[0].Text, hint)
	}
	r := v.againstLeader(to)
	if r != nil {
		r.Text = "voter " + to.label() + " " + r.Text
	}
	return r
}

// voterNamed returns the voter of the host with that name or ID or, if there is no such host, the voter with that
// member name or ID.
func (v View) voterNamed(host string) (Member, *Refusal) {
	i := slices.IndexFunc(v.Hosts, func(h Host) bool { return h.ID == host })
	if i < 0 {
		i = slices.IndexFunc(v.Hosts, func(h Host) bool { return h.Name == host })
	}
	if i >= 0 {
		if m, voter := v.voterOf(v.Hosts[i]); voter {
			return m, nil
		}
		return Member{}, &Refusal{Wrong, "", host + " is not a voter", "quorumctl status lists the voters"}
	}
	m, against := MemberNamed(v, host, false)
	if against == nil && m.Learner {
		against = &Refusal{Wrong, "", host + " is not a voter", "quorumctl status lists the voters"}
	}
	return m, against
}

// bestLeader returns the best voter other than the leader.
func (v View) bestLeader() (Member, *Refusal) {
	best, found := bestVoterOf(v, func(m Member) bool { return !m.Leader && v.againstLeader(m) == nil })
	if found {
		return best, AgainstTransfer(v, best)
	}
	others := 0
	for m := range v.Cluster.voters() {
		if m.Leader {
			continue
		}
		if others++; AgainstTransfer(v, m) != nil {
			best = m
		}
	}
	if others == 1 {
		return best, AgainstTransfer(v, best)
	}
	if others == 0 {
		return Member{}, &Refusal{Wrong, "", "there is no other voter", "quorumctl cluster resize 3 adds voters"}
	}
	return Member{}, conflicts(LeadershipNotTransferred, "no other voter is fit to lead now",
		"quorumctl leader transfer HOST names the reason for each")
}

// TransferPlan returns the steps of a transfer to a voter, and warnings.
func TransferPlan(v View, to Member) (steps []PlanStep, warnings []string) {
	if to.Leader {
		return nil, nil
	}
	from, host := "the leader", ""
	for m := range v.Cluster.voters() {
		if m.Leader {
			from, host = m.label(), m.label()
		}
	}
	voters, live := v.Cluster.Counts()
	return []PlanStep{{
		Text:   fmt.Sprintf("leadership is transferred from %s to %s, under the lock", from, to.label()),
		Voters: voters, Tolerance: Tolerance(voters, live), Change: PlanTransfers, Host: host, NewLeader: to.label(),
	}}, []string{"writes in flight at the old leader may be lost; clients have to retry them"}
}
