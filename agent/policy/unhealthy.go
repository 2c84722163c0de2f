// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"fmt"
	"strings"
	"time"

	"github.com/quorumd/quorumd/agent/durationfmt"
	"github.com/quorumd/quorumd/health"
)

// A voter is unhealthy if its own host reports an unhealthy state and the deciding host has measured evidence of it:
// the fsync metrics of the voter's etcd, its lag, its silence, or data that differs from that of a majority. The report
// or the evidence alone may be wrong: something may keep a probe from writing, or a network path may be bad. A host
// record alone is never evidence, because it may be forged.
//
// Both the report and the evidence must be current. A health state improves only long after writes are fast again. In
// the meantime the host record reports that the host recovers, and the grace period restarts. The fsync metrics are
// evidence only while every minute has a slow fsync.

// UnhealthySince is for how long a host's own record has reported that the host harms the cluster.
type UnhealthySince struct {
	// For is how long the host has been SLOW or worse without a break; 0 if it is not, or if its writes are fast again.
	For      time.Duration
	HangsFor time.Duration // how long the host's disk has hung or failed without a break; 0 if it does not
}

// Fsyncs holds the fsync metrics of a member's etcd, as read by the deciding host.
type Fsyncs struct {
	Known  bool
	Absent string        // why the metrics are unknown; empty if the agent has not tried to read them
	Age    time.Duration // the age of the newest reading
	// P99 is an upper bound of the p99 of the fsyncs of the last minutes if they are certainly slow; otherwise 0.
	P99 time.Duration
	// SlowFor is for how long P99 has been above 0 with a slow fsync in every minute; 0 if this is not so now.
	SlowFor time.Duration
}

// hangGrace is how long a voter's disk must hang or fail before another host may replace the voter, even if the grace
// period for a slow disk is longer.
const hangGrace = time.Minute

// healthyReportDelay is the longest time until a host reports that its writes are fast again. If a host has reported an
// unhealthy state for the grace period plus this delay, the state has lasted for at least the grace period.
const healthyReportDelay = 90 * time.Second

// unconfirmed is the reason why a voter does not count as unhealthy if only its own host record reports it as
// unhealthy.
const unconfirmed = "only its own host record reports it"

// UnhealthyVoter is a voter that is unhealthy, by its own report and by evidence.
type UnhealthyVoter struct {
	Member   Member
	State    health.State
	For      time.Duration
	Evidence string // as text
	// GraceLeft is the time until another host may replace the voter; 0 if that time has passed, or if unhealthy voters
	// are not replaced automatically.
	GraceLeft time.Duration
	// Held is why the voter is not replaced; empty if it will be.
	Held        string
	Replacement string // the host that is replacing the voter; empty if none is yet
	// Surplus reports that there is a surplus voter, so this one is removed without a replacement.
	Surplus bool
}

// reportedUnhealthy returns the report and the evidence that make a voter unhealthy according to the last observations,
// or why the voter is not unhealthy.
func (v View) reportedUnhealthy(m Member) (s UnhealthyVoter, why string) {
	h, present := v.hostOf(m)
	switch {
	case m.Learner:
		return s, "it is not a voter"
	case !present:
		return s, "no quorumd on its host reports its health state"
	case Unhealthy(h.Health) && h.Recovers:
		return s, fmt.Sprintf("it still reports %s, but its writes are fast again", h.Health)
	case !Unhealthy(h.Health) || h.UnhealthySince.For == 0:
		return s, "it is " + h.Health.String() + " by its own report"
	case !blocks(h.Health, h.Ungated, health.Joins):
		return s, "no finding behind its health state blocks joins"
	case !h.Manage:
		return s, "its quorumd only observes"
	case h.InOperation, v.Op.info().down && v.Op.names(h, m):
		return s, "it is in an operation"
	}
	text, left := v.evidence(m)
	if text == "" {
		return s, unconfirmed
	}
	s = UnhealthyVoter{Member: m, State: h.Health, For: h.UnhealthySince.For, Evidence: text}
	if v.Limits.UnhealthyGrace > 0 {
		s.GraceLeft = max(0, v.graceLeft(m, h), left)
	}
	return s, ""
}

// passingTimes is the factor by which the grace period is longer for a disk that is only slow. Most such disks become
// fast again by themselves: a full write cache, a RAID check, a battery learn cycle and a backup take less than an
// hour.
const passingTimes = 6

// graceLeft returns for how much longer a host's health state must last before its voter may be replaced. A disk that
// has become fast again by itself before, for example after a nightly backup, gets at least 1.5 times the longest time
// that this took. A disk that is only slow gets at least passingTimes times the grace period: nothing else indicates a
// defect, and the voter still keeps up. A disk that hangs or has failed gets at most hangGrace.
func (v View) graceLeft(m Member, h Host) time.Duration {
	grace := max(v.Limits.UnhealthyGrace, h.HealsAfter+h.HealsAfter/2)
	if !h.Defective && v.keepsUp(m) {
		grace = max(grace, passingTimes*v.Limits.UnhealthyGrace)
	}
	left := grace + healthyReportDelay - h.UnhealthySince.For
	if h.UnhealthySince.HangsFor > 0 {
		left = min(left, hangGrace-h.UnhealthySince.HangsFor)
	}
	return left
}

// keepsUp reports whether a voter answers reads and follows the leader, apart from interruptions shorter than the
// lock's TTL.
func (v View) keepsUp(m Member) bool {
	return (m.Live || m.DownFor < v.Limits.LockTTL) && m.BehindFor < v.Limits.LockTTL
}

// silent reports whether a voter answers no linearizable read, its own host reports that its disk hangs or has failed,
// and this host is not cut off from the voter. Silence alone is not evidence: this host may be cut off while a slow
// voter still serves others.
func (v View) silent(m Member) bool {
	h, present := v.hostOf(m)
	return !m.Live && present && h.UnhealthySince.HangsFor > 0 && !v.cutOffFrom(m)
}

// cutOffFrom reports whether this host cannot connect to a voter to which another member's host connects. Then the
// network is the cause of the voter's silence: a host whose disk hangs still accepts connections. A host that has
// FAILED stays so until it boots, so its report does not show whether its disk hangs now.
func (v View) cutOffFrom(m Member) bool {
	connects := func(h Host) (known, accepted bool) {
		r, found := h.reportOn(m.ID)
		return found && r.Peer != "", r.Peer.Accepts() || r.Client.Accepts()
	}
	lost, reached := false, false
	for _, h := range v.Hosts {
		known, accepted := connects(h)
		lost = lost || h.Own && known && !accepted
		reached = reached || !h.Own && accepted && h.PeerURL != m.PeerURL && v.isMember(h.PeerURL)
	}
	return lost && reached
}

// Corruption is what the deciding host has found when it compared the hash of a voter's data with those of the others:
// a majority of all voters has the same hash, and this voter a different one.
type Corruption struct {
	Times    int           // comparisons in a row; 0 if its hash is that of the majority, or unknown
	For      time.Duration // time since the first of them
	Revision int64         // the revision of the compaction at which the last comparison was made
}

// evidence returns the evidence that a voter is unhealthy, and for how much longer it must last before the voter may be
// replaced. If there are several pieces of evidence, it returns the one with the shortest time left, or among those
// that have lasted long enough the one that has lasted longest.
func (v View) evidence(m Member) (text string, left time.Duration) {
	var longest time.Duration
	add := func(lasts, needed time.Duration, format string, args ...any) {
		if wait := max(0, needed-lasts); lasts > 0 && (text == "" || wait < left || wait == left && lasts > longest) {
			text, left, longest = fmt.Sprintf(format, args...), wait, lasts
		}
	}
	if v.silent(m) {
		add(m.DownFor, v.silenceNeeded(m), "it has answered no linearizable read for %s",
			durationfmt.Seconds(m.DownFor))
	}
	add(m.BehindFor, v.Limits.LockTTL, "it is %d entries behind the leader", m.Lag)
	if f := m.Fsyncs; f.Known {
		add(f.SlowFor, v.Limits.LockTTL, "99 of 100 WAL fsyncs of its etcd take up to %s", durationfmt.Text(f.P99))
	}
	if c := m.Corrupt; c.Times >= health.HashProofs {
		add(c.For, v.Limits.LockTTL, "its data at revision %d differs from that of a majority of the voters",
			c.Revision)
	}
	return text, left
}

// silenceNeeded returns how long a voter's silence must last as evidence. It is the whole grace period if the voter
// answered without a break for longer than that after its disk had failed. Then the silence may have a different
// cause that ends by itself, such as a defragmentation: a host that has FAILED stays so until it boots, even if its
// disk works again.
func (v View) silenceNeeded(m Member) time.Duration {
	h, _ := v.hostOf(m)
	served := min(m.ServedFor, h.UnhealthySince.HangsFor-m.DownFor)
	if h.Health == health.Failed && served > v.Limits.UnhealthyGrace {
		return v.Limits.UnhealthyGrace
	}
	return v.Limits.LockTTL
}

// evidence returns why a voter's fsync metrics do not confirm its host's report.
func (f Fsyncs) evidence() string {
	switch {
	case f.Known:
		return fmt.Sprintf("%s ago, its etcd's metrics showed a minute without a slow fsync",
			durationfmt.Seconds(f.Age))
	case f.Absent != "":
		return "its etcd's metrics cannot be read: " + f.Absent
	}
	return "its etcd's metrics have not been read yet"
}

// unhealthyFor is reportedUnhealthy for decisions: it ignores observations of earlier rounds.
func (v View) unhealthyFor(m Member) (UnhealthyVoter, string) {
	if !v.Cluster.Reachable || !v.Cluster.Fresh || v.foreign() || v.Resting && !v.HostsFresh {
		return UnhealthyVoter{}, "the cluster was not observed in this round"
	}
	return v.reportedUnhealthy(m)
}

// isUnhealthy reports whether a voter has been unhealthy for so long that another host may replace it.
func (v View) isUnhealthy(m Member) bool {
	s, why := v.unhealthyFor(m)
	return v.Limits.UnhealthyGrace > 0 && why == "" && s.GraceLeft == 0
}

// UnhealthyVoters returns the voters that are unhealthy according to the last observations, and what happens to each.
func UnhealthyVoters(v View) []UnhealthyVoter {
	if !v.Cluster.Reachable || v.foreign() {
		return nil
	}
	var all []UnhealthyVoter
	for m := range v.Cluster.voters() {
		s, why := v.reportedUnhealthy(m)
		if why != "" {
			continue
		}
		s.Surplus = v.hasSurplus()
		if s.Held = v.unhealthyHeld(m); v.Op.replacesMember(m) {
			s.Held, s.Replacement = "", v.Op.HostName
		}
		all = append(all, s)
	}
	return all
}

// Text describes the voter's state, and what happens next and when.
func (s UnhealthyVoter) Text(grace time.Duration) string {
	text := fmt.Sprintf("%s has been %s for %s by its own report, and %s", s.Member.label(), s.State,
		durationfmt.Seconds(s.For), s.Evidence)
	return text + fate(s.Surplus, s.Replacement, s.Held, s.GraceLeft, grace, "")
}

// unhealthyHeld returns why no host replaces an unhealthy voter; empty if one may.
func (v View) unhealthyHeld(m Member) string {
	if why := v.repairBlocked("repair.unhealthy", v.Limits.UnhealthyGrace); why != "" {
		return why
	}
	if text, several := v.severalImpaired(v.strained(m)); several {
		return text
	}
	if r, holds := vetoed(v, vetoRepairsUnreadable, vetoRepairsSpent); holds {
		return r.Text
	}
	if r, holds := vetoed(v, vetoReplaceAtRisk); holds && v.isUnhealthy(m) {
		return r.Text
	}
	if text, last := lastOfUpgrade(v, m, Version{}); last && v.hasSurplus() {
		return text
	}
	switch voters, _ := v.Cluster.Counts(); {
	case v.hasSurplus():
		return ""
	case !mayJoinAsExtra(voters, v.Target.Voters):
		return fmt.Sprintf("there are %d voters, and %d are configured", voters, v.Target.Voters)
	}
	return v.noReplacement(m)
}

// voterUnhealthy reports whether any voter is unhealthy.
func voterUnhealthy(v View) (string, bool) {
	var all []string
	for _, s := range UnhealthyVoters(v) {
		all = append(all, s.Text(v.Limits.UnhealthyGrace))
	}
	return strings.Join(all[:min(len(all), mostNamed)], "; "), len(all) > 0
}

// voterSuspect reports whether voters have reported themselves unhealthy for the whole grace period, without other
// evidence. They are not replaced, and operators must be able to see why.
func voterSuspect(v View) (string, bool) {
	if !v.Cluster.Reachable || v.foreign() || v.Limits.UnhealthyGrace == 0 {
		return "", false
	}
	var all []string
	for m := range v.Cluster.voters() {
		h, _ := v.hostOf(m)
		if _, why := v.reportedUnhealthy(m); why != unconfirmed || v.graceLeft(m, h) > 0 || v.Op.replacesMember(m) {
			continue
		}
		before := fmt.Sprintf("its etcd counts a slow fsync in every minute, or it is more than %d entries behind the "+
			"leader", v.Limits.PromoteLag)
		if h.UnhealthySince.HangsFor > 0 {
			before += ", or it answers no linearizable read"
		}
		all = append(all, fmt.Sprintf("%s has been %s for %s by its own host record alone: %s; no host replaces it "+
			"unless %s", m.label(), h.Health, durationfmt.Seconds(h.UnhealthySince.For), m.Fsyncs.evidence(), before))
	}
	return strings.Join(all[:min(len(all), mostNamed)], "; "), len(all) > 0
}

// onlySlowIsDown reports whether the only voter that does not answer is the slow one that this host replaces. A slow
// disk delays the voter's answers, but its vote still counts. If the slow voter were dead, adding a voter would leave
// the cluster without fault tolerance. Therefore some host must still reach the slow voter, after a time in which a
// dead voter would have been detected.
func (v View) onlySlowIsDown() bool {
	who, there := v.memberByID(v.Op.Replaces)
	return there && !who.Live && who.DownFor >= silenceWindow && v.reached(who) && v.isUnhealthy(who) &&
		!v.silent(who) && mayJoinWithSlow(v.Cluster.Counts())
}

// reached reports whether this host or another member's host reaches a member.
func (v View) reached(m Member) bool {
	for _, h := range v.Hosts {
		s, reports := h.reportOn(m.ID)
		if reports && (h.Own || v.isMember(h.PeerURL)) && h.PeerURL != m.PeerURL && !s.Lost() && !s.Unsure() {
			return true
		}
	}
	return false
}

// recovered describes a voter that is healthy again by its own report; empty if it is not, or if that is unknown.
func (v View) recovered(m Member) string {
	h, present := v.hostOf(m)
	if !present || Unhealthy(h.Health) || h.Health == health.Unknown {
		return ""
	}
	return m.label() + " is " + h.Health.String() + " by its own report"
}

// joinAsExtra continues a replacement in which this host joins first. Its learner does not affect the quorum, and is
// promoted only while the voter to be replaced is known to be unhealthy and the others are known to be healthy.
func joinAsExtra(v View, m Member, listed bool) Decision {
	if !listed {
		return addLearner(v)
	}
	d := followLearner(v, m)
	if d.Step.Kind != StepPromote {
		return d
	}
	if r, holds := vetoed(v, vetoReplacesLive, vetoReplacesEarly, vetoSeveralDown, vetoReplaceAtRisk); holds {
		return Decision{Reasons: []Reason{r}}
	}
	return d
}

// completeReplace removes the voter that this host has replaced, after transferring its leadership. This host votes by
// then, so the replaced voter is removed even if it has recovered, provided that there is a surplus voter. The replaced
// voter stays if it has recovered and a third voter is dead or unhealthy: a later operation then removes the third one.
// It also stays if an unfinished upgrade needs it, if unhealthy voters are not replaced automatically, or if the
// operation has taken longer than LearnerMax.
func completeReplace(v View, m, who Member) Decision {
	if v.Op.Phase != PhaseRemoving {
		if d := finishJoin(v, m); d.Step.Kind != StepEndOp || m.DownFor > v.Limits.LearnerStall {
			return d
		}
	}
	why := "this host votes; " + who.label() + " remains a member"
	other, worse := v.worseVoter(who)
	if worse {
		why = who.label() + " is healthy again and " + other.label() + " is not, so " + other.label() + " is removed"
	}
	last, isLast := lastReplaced(v)
	if isLast {
		why = last
	}
	stays := isLast || worse || who.Learner || !v.hasSurplus() ||
		v.Limits.UnhealthyGrace == 0 || v.Op.Elapsed > v.Limits.LearnerMax
	switch {
	case stays && v.Op.Phase == PhaseRemoving: // the removal may have reached etcd
		return do(Step{Kind: StepRollBack, MemberID: v.Op.MemberID, Outcome: Joined, Why: why})
	case stays:
		return do(Step{Kind: StepEndOp, Outcome: Joined, Why: why})
	}
	if text, holds := v.lossAtRisk(who.ID, false); holds && who.Live && !v.isUnhealthy(who) {
		return wait(QuorumAtRisk, "%s", text)
	}
	return removeAsVoter(v, who)
}

// worseVoter returns a voter that is dead or unhealthy, provided that the given voter answers and is not unhealthy.
func (v View) worseVoter(than Member) (Member, bool) {
	if !than.Live || v.isUnhealthy(than) {
		return Member{}, false
	}
	for m := range v.Cluster.voters() {
		if m.ID != than.ID && (v.isDead(m) || v.isUnhealthy(m)) {
			return m, true
		}
	}
	return Member{}, false
}
