// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"fmt"
	"slices"

	"github.com/quorumd/quorumd/agent/durationfmt"
	"github.com/quorumd/quorumd/health"
)

// A voter that has lost its data never comes back as itself: it has forgotten what it acknowledged. Once the work on
// its host is over and the data is gone, its own host abandons the member: it records that on disk, ends the
// operation with MEMBER_LOST, and replaces itself. It removes the member, if the others allow that, and joins as a
// learner; if a standby is ready, that one votes next. Gone means that the file systems that held the data are mounted,
// can be read and hold no member, as observed after the work has ended. Not mounted is not gone.

// placed reports whether the file systems are mounted on which the member's data was last seen.
func (d Data) onKnownMount(self Self) bool { return self.DataMount != "" && d.Mount == self.DataMount }

// Mounted returns what is known about the member's data: unknown if the file system that held it is not mounted.
func (d Data) Mounted(self Self) Data {
	gone := d.State == DataEmpty || d.State == DataRemains
	if !gone || self.MemberID == 0 || self.DataMount == "" || d.Mount == "" || d.onKnownMount(self) {
		return d
	}
	d.State = DataUnknown
	d.Detail = fmt.Sprintf("the file system that held it is not mounted at %s: mount it", self.DataMount)
	return d
}

// workUnderWay reports whether this host is in an operation whose work is not over, or that is managed externally: a
// removed disk may come back with its end.
func (v View) workInProgress() bool {
	a := v.Asked
	begun := a != nil && (!a.NotBegun || a.Stopped)
	return begun && !a.Done && !a.Released && !needsOnlyStart(v)
}

// worksAlone reports whether the work of this host's operation is done, or is done once its etcd starts.
func needsOnlyStart(v View) bool {
	return v.Asked.Work == WorkRestart || v.Op != nil && v.owns(KindCycle) && workDone(v)
}

// givesUp reports whether this host abandons its own member now, which was taken down cleanly: the work is over, and
// the data was read since then and is gone.
func (v View) givesUp(m Member) bool {
	gone := v.Data.State == DataEmpty || v.Data.State == DataRemains
	if m.Learner || m.Live || !gone || !v.Data.onKnownMount(v.Self) || v.Data.Age >= v.Unit.Since || unitRuns(v) {
		return false
	}
	over := v.Asked != nil && v.Asked.Stopped && v.Asked.Done // also once its operation was released
	if !v.owns(KindCycle) && !over || v.foreign() || v.Self.MemberID != m.ID || v.workInProgress() {
		return false
	}
	return v.Asked == nil || !v.Asked.Done ||
		v.Asked.DoneFor > v.Limits.Settle && v.Data.Age < v.Asked.DoneFor-v.Limits.Settle
}

// gaveUp reports whether this host's disk records that its own member is given up.
func (v View) gaveUp(m Member) bool {
	return v.Self.LostID != 0 && m.ID == v.Self.LostID && m.PeerURL == v.Self.PeerURL && !m.Learner && !m.Live
}

func gaveUpText(m Member) string {
	return fmt.Sprintf("the data of voter %s (%x) was lost: this host removes that member, then joins as a new one",
		m.label(), m.ID)
}

// endLost ends the operation of a host whose data is gone, once its disk records that: data that comes back later is
// not started.
func endLost(v View, m Member) Decision {
	if !v.gaveUp(m) {
		return wait(MemberLost, "the data of voter %s (%x) is gone; this host records that first", m.label(), m.ID)
	}
	if d, decided := underLock(v, "to end this host's operation"); decided {
		return d
	}
	why := fmt.Sprintf("the work has ended, and the data of voter %s (%x) is gone", m.label(), m.ID)
	return do(Step{Kind: StepEndOp, Outcome: MemberLost, Why: why})
}

// rejoin begins the operation by which this host replaces its own member, if nothing speaks against it.
func rejoin(v View) (Decision, bool) {
	m, listed := v.member()
	if !listed || v.Op != nil || !v.Cluster.Reachable || v.foreign() || !v.gaveUp(m) {
		return Decision{}, false
	}
	target, vetoes := rejoinTarget(v)
	reasons := against(v, vetoes)
	switch {
	case len(reasons) == 0 && v.Lock.Mine:
		why := "the data of " + m.label() + " was lost"
		return do(Step{Kind: StepBeginReplace, Target: target, MemberID: m.ID, Why: why}), true
	case len(reasons) == 0:
		return do(Step{Kind: StepTakeLock, Why: "to replace its own member, whose data was lost"}), true
	case v.Lock.Mine:
		return do(Step{Kind: StepReleaseLock, Why: reasons[0].Text}), true
	}
	lost := Reason{MemberLost, fmt.Sprintf("%s; blocked: %s", gaveUpText(m), reasons[0].Text)}
	return Decision{Reasons: append([]Reason{lost}, reasons...)}, true
}

// rejoinTarget returns the role in which this host replaces its own member, and what keeps that member from being
// removed. If a standby is ready, it gets the place.
func rejoinTarget(v View) (Role, []veto) {
	common := slices.Concat(repairVetoes(), []veto{
		vetoOperationInFlight(), vetoLockHeld(), vetoListUnsettled(), vetoReplaceEven(),
	})
	if v.standbyReady() {
		return RoleSpare, common
	}
	return RoleVoter, slices.Concat(common, hostVetoes(), []veto{vetoLearnerPresent()})
}

// standbyReady reports whether a standby of another host could vote at once.
func (v View) standbyReady() bool {
	for m := range v.Cluster.learners() {
		h, present := v.hostOf(m)
		well := !blocks(h.Health, h.Ungated, health.Joins)
		if present && h.Role == RoleStandby && h.Manage && well && v.caughtUp(m) {
			return true
		}
	}
	return false
}

// removeLost removes this host's own member, whose data was lost. No other host needs to report it dead.
func removeLost(v View, m Member) Decision {
	code, text := whyLostStays(v, m)
	switch {
	case code != "" && v.Op.Phase == PhaseBegun:
		return do(Step{Kind: StepEndOp, Outcome: code, Why: text})
	case code != "": // the removal may have reached etcd
		return do(Step{Kind: StepRollBack, MemberID: v.Op.MemberID, Outcome: code, Why: text})
	}
	if r, holds := vetoed(v, vetoCorrupt, vetoNoSpace, vetoReplaceAtRisk); holds {
		return Decision{Reasons: []Reason{r}, Again: lookSoon}
	}
	if v.Op.Phase != PhaseRemoving {
		return do(Step{Kind: StepSetPhase, Phase: PhaseRemoving, MemberID: v.Op.MemberID})
	}
	return do(Step{Kind: StepRemoveMember, MemberID: m.ID, Why: v.Op.Reason})
}

// lostStays returns why this host's own member is not removed, if there is a reason.
func whyLostStays(v View, m Member) (ReasonCode, string) {
	switch {
	case m.Live:
		return MemberLive, "voter " + m.label() + " answers"
	case !v.gaveUp(m) || unitRuns(v): // otherwise anyone who can write the record could get members removed
		return Disowned, "this host's disk has no record that the data of " + m.label() + " was lost"
	case v.Op.Elapsed > v.Limits.LearnerStall:
		return JoinTimedOut, fmt.Sprintf("the voter could not be removed for %s, the limit is %s",
			durationfmt.Seconds(v.Op.Elapsed), durationfmt.Text(v.Limits.LearnerStall))
	}
	if r, holds := vetoed(v, vetoSeveralDown); holds {
		return r.Code, r.Text
	}
	return "", ""
}

// againstLost returns why this host may not be taken down for that work, or nil: the data of its member is gone, so
// that its etcd would not come back. Maintenance is how a disk is replaced.
func againstLostMember(v View, work Work) *Refusal {
	m, listed := v.member()
	if !listed || m.Live || m.Learner || work.info().operatorEnds { // a learner that was just added has no data yet
		return nil
	}
	text, gone := dataGone(v, m)
	if v.gaveUp(m) {
		text, gone = gaveUpText(m), true
	}
	if !gone {
		return nil
	}
	return conflicts(MemberLost, text, "see what this host waits for: quorumctl explain; to replace its disk: "+
		"quorumctl maintenance on --reason '<why>'")
}

// memberLost keeps a host from being taken down whose etcd would not come back.
func memberLost(v View) (string, bool) {
	if v.Asked == nil {
		return "", false
	}
	if r := againstLostMember(v, v.Asked.Work); r != nil {
		return r.Text, true
	}
	return "", false
}
