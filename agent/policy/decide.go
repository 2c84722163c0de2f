// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"fmt"
	"slices"

	"github.com/quorumd/quorumd/agent/durationfmt"
)

// Decide gives the next step, if there is one, the reasons why there is not more, and what the disk is to say.
func Decide(v View) Decision {
	d := v.tell(held(v))
	if d.Step.Kind == StepNone {
		d.Reasons = caution(v, d.Reasons)
	}
	if due := dueIn(v); due > 0 && v.Led != nil && (d.Again == 0 || due < d.Again) {
		d.Again = due
	}
	if soon, behind := v.repairNears(); soon > 0 && d.Step.Kind == StepNone && (d.Again == 0 || soon < d.Again) {
		d.Again, d.Behind = soon, append(d.Behind, behind...)
	}
	d.First = goesFirst(v, d)
	request := noteRequest(v, d.Step)
	hold := wantHold(v, request)
	d.Step.Guard = guardOf(v, d.Step, request, hold)
	d.Notes = Notes{
		StartGuard: hold, Request: loosened(request, hold), Removal: noteRemoval(v), Self: noteSelf(v),
		Queue: noteQueue(v, d.Role), Backup: noteBackup(v), Drill: noteDrill(v), BootstrapAttempt: noteFounding(v),
		Join: noteJoin(v, d.Step), Repair: countsRepair(v, d.Step), Recovery: noteRecovery(v, d.Step),
	}
	d.Quiet = quiet(v, d)
	return d
}

// held keeps a step back that must not be taken now.
func held(v View) Decision {
	d := decide(v)
	if v.Cluster.Denied {
		tellDenied(d.Reasons)
	}
	d.Role = roleOf(v)
	d.Waiting = waiting(v)
	if d.Step.Kind == StepNone && v.Lock.Mine && v.Op == nil { // a part that only waits needs no lock
		d.Step = Step{Kind: StepReleaseLock, Why: "there is nothing to do under it now"}
	}
	if d.Step.Kind == StepNone {
		return d
	}
	if d.Step.Kind.Info().Led { // a pause holds it as well that only its own member has told of
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
		return withhold(d, v.runByOthers())
	case v.Self.Mode != Manage:
		return withhold(d, Reason{ModeObserve, "it would be: " + d.Step.String()})
	case v.Recovery != nil && !v.Recovery.Late: // a person's word, where there is nobody to pause it
		return d
	case v.Pause != nil && !d.Step.Kind.Info().Always && !comesBack(v, d.Step):
		return withhold(d, paused(v.Pause))
	case v.holdsAll() && !d.Step.Kind.Info().Always && !comesBack(v, d.Step):
		r, _ := v.unreadable()
		return withhold(d, r)
	// whatever it is to be started for: a join, too, may come in between
	case mayRun(v) && d.Step.Kind == StepStartUnit:
		return withhold(d, Reason{CommandRunning, v.Asked.Command.Text})
	case v.Health.Hangs && d.Step.Kind == StepTakeLock: // again and again, it would keep all others from it
		return withhold(d, Reason{HealthBad, v.Health.Text})
	}
	return d
}

// tellDenied says that etcd answers, and refuses: what looks from the inside like a cluster without a quorum is none.
func tellDenied(reasons []Reason) {
	for i := range reasons {
		if code := reasons[i].Code; code == ClusterUnreachable || code == NoQuorum {
			reasons[i].Code = PermissionDenied
		}
	}
}

// comesBack tells whether a step starts the etcd that this agent has stopped. A pause does not keep a
// member down.
func comesBack(v View, s Step) bool {
	return s.Kind == StepStartUnit && v.Asked != nil && v.Asked.Stopped
}

// withhold keeps a step back and names the reason before all others.
func withhold(d Decision, r Reason) Decision {
	d.Would, d.Step = d.Step, Step{}
	d.Reasons = append([]Reason{r}, d.Reasons...)
	return d
}

// decide asks the parts of the policy in the order of their concerns; the first that has something to say decides.
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

// rest explains why nothing is to do.
func rest(v View) Decision {
	if v.foreign() {
		return because(v, vetoIDMismatch)
	}
	if v.Op != nil {
		return Decision{Reasons: because(v, vetoOperationInFlight).Reasons, Again: v.wordAwaited()}
	}
	if m, listed := v.member(); listed && !m.Live {
		return ownMemberDown(v, m)
	}
	if text, down := voterDown(v); down { // that is no rest, on whichever host one looks
		code := VoterNotLive
		if _, dead := v.fates(); dead {
			code = VoterDead
		}
		return Decision{Reasons: []Reason{{code, text}}, Again: v.wordAwaited()}
	}
	if r, slow := leaderSlow(v); slow && sick(v.Health.State) { // one that is only warm is told beside
		return Decision{Reasons: []Reason{r}}
	}
	if r, holds := vetoed(v, vetoVoterSick, vetoSurplus); holds {
		return Decision{Reasons: []Reason{r}}
	}
	return wait(AtRest, "this host is a %s; nothing to do", roleOf(v))
}

// member gives this host's entry in the member list.
func (v View) member() (Member, bool) {
	for _, m := range v.Cluster.Members {
		if m.PeerURL == v.Self.PeerURL {
			return m, true
		}
	}
	return Member{}, false
}

// hostOf gives what the host of a member has published.
func (v View) hostOf(m Member) (Host, bool) {
	i := slices.IndexFunc(v.Hosts, func(h Host) bool { return h.PeerURL == m.PeerURL })
	if i < 0 {
		return Host{}, false
	}
	return v.Hosts[i], true
}

// roleOf says what this host is.
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
	return RoleSpare // a learner that never started and has no join is none that counts
}

// ownUnit keeps the etcd of a member running and stops that of one that was removed.
func ownUnit(v View) (Decision, bool) {
	if v.Data.State != DataMember || v.foreign() || (v.Cluster.Reachable && v.Data.ClusterID != v.Cluster.ID) {
		return Decision{}, false // another cluster's data; join says so
	}
	if v.Cluster.Reachable && !v.listed(v.Data.MemberID) {
		return stopRemoved(v)
	}
	if m, _ := v.member(); v.gaveUp(m) && !unitRuns(v) { // a disk that is back does not bring it back
		return Decision{}, false
	}
	if !v.Cluster.Reachable && (v.Cluster.ExpectedID != v.Data.ClusterID || v.Self.MemberID != v.Data.MemberID) {
		// Nobody can say now whether this member still is one. One that was removed could form
		// the old quorum with others like it.
		return wait(NoQuorum, "%s; the data directory is not known to belong to a current member", v.unreachable()), true
	}
	down := v.Unit.State == UnitFailed || v.Unit.State == UnitInactive
	if down && v.Asked != nil && v.Asked.Stopped {
		return taken(v), true
	}
	switch v.Unit.State {
	case UnitFailed:
		return startAgain(v), true
	case UnitInactive:
		if !v.Self.Drives { // nobody knows how it has ended: its member that does not answer is told
			return Decision{}, false
		}
		return stopped(v), true
	case UnitActivating:
		return wait(Starting, "etcd is starting"), true
	}
	return Decision{}, false
}

// stopped explains an etcd that has ended in order: somebody has stopped it, or it was told that its member was
// removed, after which it ends with 0 or with 1, as it happens. While no voter answers nobody can tell which.
func stopped(v View) Decision {
	d := wait(UnitStopped, "etcd was stopped cleanly")
	if !v.Cluster.Reachable {
		d.Reasons[0].Text += ", or exited because its member was removed"
		d.Reasons = append(d.Reasons, silent(v).Reasons...)
	}
	return d
}

// stopRemoved stops an etcd whose member is not in the list any more. The look at its data must be
// younger than the list and than its start: a host that was added again has another member ID.
func stopRemoved(v View) (Decision, bool) {
	running := v.Unit.State == UnitActive || v.Unit.State == UnitActivating
	if !running || v.Data.Age >= min(v.Cluster.StableFor, v.Unit.Since) {
		return Decision{}, false
	}
	return do(Step{Kind: StepStopUnit, Why: fmt.Sprintf("member %x was removed from the cluster", v.Data.MemberID)}),
		true
}

// listed tells whether the member list holds a member.
func (v View) listed(id uint64) bool {
	for _, m := range v.Cluster.Members {
		if m.ID == id {
			return true
		}
	}
	return false
}

// startAgain starts a member's etcd that has ended on its own account. It needs no lock: a
// member that comes back takes nothing from anybody.
func startAgain(v View) Decision {
	if r, holds := vetoed(v, vetoVersionUnknown, vetoVersionIncompatible); holds {
		return Decision{Reasons: []Reason{r}}
	}
	if left := v.Limits.StartRetry - v.Unit.SinceStart; left > 0 {
		return startLater(v, "etcd failed; it is restarted in %s", durationfmt.Tenths(left))
	}
	return do(Step{Kind: StepStartUnit, Why: "it has failed: " + v.Unit.Detail})
}
