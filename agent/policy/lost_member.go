// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"fmt"
	"slices"
	"time"

	"github.com/quorumd/quorumd/agent/durationfmt"
	"github.com/quorumd/quorumd/health"
)

// A voter that has lost its data must not come back as the same member: it no longer has the entries that it
// acknowledged. If the data is gone when the work of an operation on its host is over, the host has to give up its
// member: it records that on disk, ends the operation with MEMBER_LOST, and replaces its own member. Unless a veto
// applies, it removes the member and joins as a learner. If a standby is ready, the standby becomes the voter instead.
// Data is gone if the file systems that held the data are mounted, were read after the work ended, and hold no member.
// Data on an unmounted file system is not gone.

// onKnownMount reports whether the file systems that last held the data of this host's member are mounted.
func (d Data) onKnownMount(self Self) bool { return self.DataMount != "" && d.Mount == self.DataMount }

// Mounted returns d, but with an unknown state if the directory holds no member and the file system that held the
// member's data is not mounted.
func (d Data) Mounted(self Self) Data {
	gone := d.State == DataEmpty || d.State == DataRemains
	if !gone || self.MemberID == 0 || self.DataMount == "" || d.Mount == "" || d.onKnownMount(self) {
		return d
	}
	d.State = DataUnknown
	d.Detail = fmt.Sprintf("the file system that held the data is not mounted at %s; mount it", self.DataMount)
	return d
}

// workInProgress reports whether this host is in an operation whose work is not over: a disk removed for that work
// may come back.
func (v View) workInProgress() bool {
	a := v.Asked
	begun := a != nil && (a.Begun || a.Stopped)
	return begun && !a.Over && !a.Released && !needsOnlyStart(v)
}

// needsOnlyStart reports whether the work of this host's operation is done, or will be once its etcd starts.
func needsOnlyStart(v View) bool {
	return v.Asked.Work == WorkRestart || v.Op != nil && v.owns(KindCycle) && workDone(v)
}

// givesUp reports whether this host has to give up its own member, which it had taken down cleanly: the work is over,
// and a read of the data directory since then has shown that the data is gone.
func (v View) givesUp(m Member) bool {
	gone := v.Data.State == DataEmpty || v.Data.State == DataRemains
	if m.Learner || m.Live || !gone || !v.Data.onKnownMount(v.Self) || v.Data.Age >= v.Unit.Since || unitRuns(v) {
		return false
	}
	if a := v.Asked; a != nil && a.Recalled != "" && !a.Ended { // the operator may still be working on the disk
		return false
	}
	over := v.Asked != nil && v.Asked.Stopped && v.Asked.Over // the request counts even if its operation was released
	if !v.owns(KindCycle) && !over || v.foreign() || v.Self.MemberID != m.ID || v.workInProgress() {
		return false
	}
	return v.Asked == nil || !v.Asked.Over ||
		v.Asked.OverFor > v.Limits.Settle && v.Data.Age < v.Asked.OverFor-v.Limits.Settle
}

// gaveUp reports whether this host's disk records that it has given up its own member, and that voter is still listed
// and down.
func (v View) gaveUp(m Member) bool {
	return v.Self.LostID != 0 && m.ID == v.Self.LostID && m.PeerURL == v.Self.PeerURL && !m.Learner && !m.Live
}

func gaveUpText(m Member) string {
	return fmt.Sprintf("the data of voter %s (%x) was lost: this host removes that member, then joins as a new one",
		m.label(), m.ID)
}

// endLost ends the operation of a host whose data is gone, once its disk records that: from then on, etcd is not
// started even if the data comes back.
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

// rejoin begins the operation in which this host replaces its own member, unless a veto applies.
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

// rejoinTarget returns the role in which this host replaces its own member, and the vetoes against removing that
// member. If a standby is ready, the standby becomes the voter instead of this host.
func rejoinTarget(v View) (Role, []veto) {
	common := slices.Concat([]veto{vetoHostConflict()}, repairVetoes(), []veto{
		vetoLastLeaves(), vetoOperationInFlight(), vetoLockHeld(), vetoListUnsettled(), vetoReplaceEven(),
		vetoLearnerVotes(),
	})
	if v.standbyReady() {
		return RoleSpare, common
	}
	return RoleVoter, slices.Concat(common, hostVetoes(), []veto{
		vetoJoinsShut(), vetoRetired(), vetoLearnerPresent(), vetoLearnerLimit(),
	})
}

// standbyReady reports whether a standby could become a voter at once.
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

// removeLost removes this host's own member, whose data was lost. No other host has to report it dead.
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

// whyLostStays returns why this host's own member must not be removed; empty if it may be.
func whyLostStays(v View, m Member) (ReasonCode, string) {
	switch {
	case m.Live:
		return MemberLive, "voter " + m.label() + " answers"
	case !v.gaveUp(m) || unitRuns(v): // otherwise any client that can write the operation record could remove members
		return OperationRejected, "etcd runs here, or this host's disk has no record that the data of " + m.label() +
			" was lost"
	case v.Op.Elapsed > v.Limits.LearnerStall:
		return JoinTimedOut, fmt.Sprintf("the voter has still not been removed after %s; the limit is %s",
			durationfmt.Seconds(v.Op.Elapsed), durationfmt.Text(v.Limits.LearnerStall))
	}
	if r, holds := vetoed(v, vetoSeveralDown, vetoLastLeaves); holds {
		return r.Code, r.Text
	}
	return "", ""
}

// againstLostMember returns why this host may not be taken down for that work, or nil: if its member's data is gone,
// its etcd would not come back. Maintenance is allowed, because an operator needs it to replace a disk.
func againstLostMember(v View, work Work) *Refusal {
	m, listed := v.member()
	if !listed || m.Live || m.Learner || work.info().operatorEnds { // a new learner has no data yet
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

// memberLost reports whether this host must not be taken down because its etcd would not come back.
func memberLost(v View) (string, bool) {
	if v.Asked == nil {
		return "", false
	}
	if r := againstLostMember(v, v.Asked.Work); r != nil {
		return r.Text, true
	}
	return "", false
}

// Ejections describes how many times this host's member was replaced within the last 30 days. The host joins again only
// after a healthy period, which doubles each time: a host that keeps failing changes the membership less and less
// often.
type Ejections struct {
	Times      int
	Ago        time.Duration // time since the last ejection; for display only, because it compares two hosts' clocks
	HealthyFor time.Duration // how long this host has been healthy without a break since its agent read of the ejection

	Member uint64 // the member that was ejected last
	// RecordedFor is HealthyFor as recorded on this host's disk, and RecordedAgo the time since it was recorded; both
	// are 0 if it is not recorded.
	RecordedFor, RecordedAgo time.Duration
}

// healthyPeriodEvery is the interval at which the healthy period is recorded. An agent that restarts soon afterwards
// continues the period.
const healthyPeriodEvery = time.Minute

// recordsHealthyPeriod reports whether to record the healthy period of an ejected host again, so that a restarted agent
// continues it. If the host's health is unknown, the record stays and ages.
func recordsHealthyPeriod(v View) bool {
	t := v.Ejections
	switch {
	case !v.Cluster.Reachable || t.Times == 0 || roleOf(v) != RoleSpare:
		return false
	case t.HealthyFor == 0:
		return t.RecordedFor > 0 && v.Health.Known() && !v.Health.Healthy()
	}
	return t.RecordedAgo >= healthyPeriodEvery || (t.RecordedFor-t.HealthyFor).Abs() > healthyPeriodEvery/2
}

// longestHealthyPeriod limits requiredHealthyPeriod, which doubles with each ejection.
const longestHealthyPeriod = 24 * time.Hour

// requiredHealthyPeriod returns how long this host must have been healthy before it joins again.
func (v View) requiredHealthyPeriod() time.Duration {
	d := v.Limits.CleanFor
	for i := 1; i < v.Ejections.Times && d < longestHealthyPeriod; i++ {
		d *= 2
	}
	return min(d, longestHealthyPeriod)
}

// Healthy reports whether a health state continues the healthy period of an ejected host. An unknown state does not.
func (h Health) Healthy() bool { return h.State == health.Warm || !h.blocks(health.Joins) }

// Known reports whether the health state is known. Just after an agent has started, it is not.
func (h Health) Known() bool { return h.State != health.Unknown && h.State != health.Qualifying }

// ejected reports whether this host was ejected and must stay healthy for longer before it joins. It does not apply to
// a member or a joining host, because their agent may have restarted and lost the healthy period.
func ejected(v View) (string, bool) {
	left := v.requiredHealthyPeriod() - v.Ejections.HealthyFor
	if v.Ejections.Times == 0 || left <= 0 || roleOf(v) != RoleSpare {
		return "", false
	}
	often := "once"
	if v.Ejections.Times > 1 {
		often = fmt.Sprintf("%d times, most recently", v.Ejections.Times)
	}
	return fmt.Sprintf("%s was ejected %s %s ago: it rejoins after being healthy for %s; %s remain", v.Self.Name,
		often, durationfmt.Seconds(v.Ejections.Ago), durationfmt.Text(v.requiredHealthyPeriod()),
		durationfmt.Seconds(left)), true
}
