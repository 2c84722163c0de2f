// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"fmt"
	"slices"

	"github.com/quorumd/quorumd/agent/durationfmt"
)

// Decide returns the next step, if any, the reasons why nothing more is done, and what to write to the disk.
func Decide(v View) Decision {
	d := v.withUnreadable(decideAllowed(v))
	if d.Step.Kind == StepNone {
		d.Reasons = caution(v, d.Reasons)
	}
	if due := transferDueIn(v); due > 0 && v.Led != nil && (d.Again == 0 || due < d.Again) {
		d.Again = due
	}
	if soon, behind := v.repairDue(); soon > 0 && d.Step.Kind == StepNone && (d.Again == 0 || soon < d.Again) {
		d.Again, d.Behind = soon, append(d.Behind, behind...)
	}
	d.First = goesFirst(v, d)
	request := noteRequest(v, d.Step)
	guard := wantGuard(v, request)
	d.Step.Guard = guardOf(v, d.Step, request, guard)
	d.Notes = Notes{
		StartGuard: guard, Request: withGuard(request, guard), Removal: noteRemoval(v), Self: noteSelf(v),
		Queue: noteQueue(v, d.Role), Backup: noteBackup(v),
		RestoreTest: noteRestoreTest(v), BootstrapAttempt: noteBootstrapAttempt(v),
		Join: noteJoin(v, d.Step), Repair: countsRepair(v, d.Step), Recovery: noteRecovery(v, d.Step),
	}
	d.Quiet = quiet(v, d)
	return d
}

// held withholds a step that must not be taken now.
func decideAllowed(v View) Decision {
	d := decide(v)
	if v.Cluster.Denied {
		reportDenied(d.Reasons)
	}
	d.Role = roleOf(v)
	d.Waiting = waiting(v)
	if d.Step.Kind == StepNone && v.Lock.Mine && v.Op == nil { // a decision that only waits needs no lock
		d.Step = Step{Kind: StepReleaseLock, Why: "there is nothing to do under it now"}
	}
	if d.Step.Kind == StepNone {
		return d
	}
	if d.Step.Kind.Info().Led { // a pause that only this host's own member reports withholds it as well
		v = v.leading()
	}
	switch {
	case v.Failed.Kind != d.Step.Kind:
	case v.Failed.Denied:
		d.Reasons = append(d.Reasons, Reason{PermissionDenied, v.Failed.Text})
	case v.Failed.Full:
		d.Reasons = append(d.Reasons, refusedAsFull(v), Reason{StepFailed, v.Failed.Text})
	default:
		d.Reasons = append(d.Reasons, Reason{StepFailed, v.Failed.Text})
	}
	switch {
	case v.Stuck != "":
		return withhold(d, Reason{StepStuck, v.Stuck})
	case d.Step.Kind.Info().Drives && !v.Self.Drives:
		return withhold(d, v.externalReason())
	case v.Self.Mode != Manage:
		return withhold(d, Reason{ModeObserve, "it would be: " + d.Step.String()})
	case v.Recovery != nil && !v.Recovery.Late: // the operator ordered it, and no cluster can be paused now
		return d
	case v.Pause != nil && !d.Step.Kind.Info().Always && !comesBack(v, d.Step):
		return withhold(d, paused(v.Pause))
	case v.blocksAll() && !d.Step.Kind.Info().Always && !comesBack(v, d.Step):
		r, _ := v.unreadable()
		return withhold(d, r)
	// checked for every start: a join may come in between
	case commandMayRun(v) && d.Step.Kind == StepStartUnit:
		return withhold(d, Reason{CommandRunning, v.Asked.Command.Text})
	case v.Health.Hangs && d.Step.Kind == StepTakeLock: // taking the lock again and again would keep it from all others
		return withhold(d, Reason{HealthBad, v.Health.Text})
	}
	return d
}

// tellDenied reports that etcd answers and refuses. From inside, that looks like a cluster without a quorum.
func reportDenied(reasons []Reason) {
	for i := range reasons {
		if code := reasons[i].Code; code == ClusterUnreachable || code == NoQuorum {
			reasons[i].Code = PermissionDenied
		}
	}
}

// comesBack reports whether a step starts an etcd that this agent has stopped. A pause does not keep a member down.
func comesBack(v View, s Step) bool {
	return s.Kind == StepStartUnit && v.Asked != nil && v.Asked.Stopped
}

// withhold drops a step and puts the reason in front of all others.
func withhold(d Decision, r Reason) Decision {
	d.Would, d.Step = d.Step, Step{}
	d.Reasons = append([]Reason{r}, d.Reasons...)
	return d
}

// decide asks the parts of the policy in the order of their concerns; the first that decides wins.
func decide(v View) Decision {
	for _, c := range concerns() {
		if d, decided := c.part(v); decided {
			return d
		}
	}
	return rest(v)
}

func do(s Step) Decision { return Decision{Step: s} }

func wait(code ReasonCode, format string, args ...any) Decision {
	return Decision{Reasons: []Reason{{code, fmt.Sprintf(format, args...)}}}
}

// rest explains why there is nothing to do.
func rest(v View) Decision {
	if v.foreign() {
		return blockedBy(v, vetoIDMismatch)
	}
	if v.Op != nil {
		return Decision{Reasons: blockedBy(v, vetoOperationInFlight).Reasons, Again: v.reportAwaited()}
	}
	if m, listed := v.member(); listed && !m.Live {
		return ownMemberDown(v, m)
	}
	if text, down := voterDown(v); down { // not at rest: every host reports a voter that is down
		code := VoterNotLive
		if _, dead := v.deadVoterSummary(); dead {
			code = VoterDead
		}
		return Decision{Reasons: []Reason{{code, text}}, Again: v.reportAwaited()}
	}
	if r, slow := leaderSlow(v); slow && Unhealthy(v.Health.State) { // WARM is only a caution
		return Decision{Reasons: []Reason{r}}
	}
	if r, holds := vetoed(v, vetoVoterUnhealthy, vetoSurplus); holds {
		return Decision{Reasons: []Reason{r}}
	}
	return wait(Idle, "this host is a %s; nothing to do", roleOf(v))
}

// member returns this host's entry in the member list.
func (v View) member() (Member, bool) {
	for _, m := range v.Cluster.Members {
		if m.PeerURL == v.Self.PeerURL {
			return m, true
		}
	}
	return Member{}, false
}

// hostOf returns the host record of a member's host.
func (v View) hostOf(m Member) (Host, bool) {
	i := slices.IndexFunc(v.Hosts, func(h Host) bool { return h.PeerURL == m.PeerURL })
	if i < 0 {
		return Host{}, false
	}
	return v.Hosts[i], true
}

// roleOf returns this host's role.
func roleOf(v View) Role {
	if !v.Cluster.Reachable {
		return RoleUnknown
	}
	m, listed := v.member()
	joining := v.Op.joins() && v.Op.Host == v.Self.ID && (!listed || !m.Standby)
	switch {
	case listed && !m.Learner:
		return RoleVoter
	case joining:
		return RoleJoining
	case listed && m.Name != "":
		return RoleStandby
	}
	return RoleSpare // a learner that never started and has no join does not count
}

// ownUnit keeps the etcd of a member running and stops that of a removed member.
func ownUnit(v View) (Decision, bool) {
	if v.Data.State != DataMember || v.foreign() || (v.Cluster.Reachable && v.Data.ClusterID != v.Cluster.ID) {
		return Decision{}, false // another cluster's data; join reports it
	}
	if v.Cluster.Reachable && !v.listed(v.Data.MemberID) {
		return stopRemoved(v)
	}
	if m, _ := v.member(); v.gaveUp(m) && !unitRuns(v) { // the member stays given up even if its disk is back
		return Decision{}, false
	}
	if !v.Cluster.Reachable && (v.Cluster.ExpectedID != v.Data.ClusterID || v.Self.MemberID != v.Data.MemberID) {
		// Whether this member still is one is unknown now. A removed member could form the old quorum with others like
		// it.
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
		if !v.Self.Drives { // how etcd ended is unknown: report that the member does not answer
			return Decision{}, false
		}
		return stopped(v), true
	case UnitActivating:
		return wait(Starting, "etcd is starting"), true
	}
	return Decision{}, false
}

// stopped explains an etcd that exited cleanly: it was stopped, or it learned that its member was removed, after which
// it exits with 0 or 1. While no voter answers, the two look alike.
func stopped(v View) Decision {
	d := wait(UnitStopped, "etcd was stopped cleanly")
	if !v.Cluster.Reachable {
		d.Reasons[0].Text += ", or exited because its member was removed"
		d.Reasons = append(d.Reasons, waitForCluster(v).Reasons...)
	}
	return d
}

// stopRemoved stops an etcd whose member is no longer in the list. The data must have been read after the list and
// after the start of etcd: a host that was added again has another member ID.
func stopRemoved(v View) (Decision, bool) {
	running := v.Unit.State == UnitActive || v.Unit.State == UnitActivating
	if !running || v.Data.Age >= min(v.Cluster.StableFor, v.Unit.Since) {
		return Decision{}, false
	}
	return do(Step{Kind: StepStopUnit, Why: fmt.Sprintf("member %x was removed from the cluster", v.Data.MemberID)}),
		true
}

// listed reports whether the member list holds a member.
func (v View) listed(id uint64) bool {
	for _, m := range v.Cluster.Members {
		if m.ID == id {
			return true
		}
	}
	return false
}

// startAgain starts a member's etcd that has failed. It needs no lock: a returning member takes nothing from the
// others.
func startAgain(v View) Decision {
	if r, holds := vetoed(v, vetoVersionUnknown, vetoVersionIncompatible); holds {
		return Decision{Reasons: []Reason{r}}
	}
	if left := v.Limits.StartRetry - v.Unit.SinceStart; left > 0 {
		return startLater(v, "etcd failed; it is restarted in %s", durationfmt.Tenths(left))
	}
	return do(Step{Kind: StepStartUnit, Why: "it has failed: " + v.Unit.Detail})
}
