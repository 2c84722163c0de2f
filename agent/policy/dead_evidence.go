// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/quorumd/quorumd/agent/durationfmt"
	"github.com/quorumd/quorumd/agent/record"
)

// A voter is dead only if the agents of all live voters report it dead. A single agent is not enough. A single
// contradiction is enough to count the voter as alive: if any host reaches it, or the leader's etcd is connected to it,
// it may still serve.

// deadFor returns for how long the agents of all live voters and the leader's etcd have reported a member dead without
// a contradiction; 0 and the reason if it is not dead. Decisions use this function, because it requires that this round
// observed the cluster.
func (v View) deadFor(m Member) (since time.Duration, why string) {
	if !v.Cluster.Reachable || !v.Cluster.Fresh || v.Resting && !v.HostsFresh {
		return 0, "the cluster was not observed in this round"
	}
	return v.reportedDead(m)
}

// reportedDead is deadFor according to the last observations, which may be older than this round.
func (v View) reportedDead(m Member) (since time.Duration, why string) {
	gone, why := v.unattendedFor(m)
	if why != "" {
		return 0, why
	}
	reported, why := v.deadReports(m)
	if why != "" {
		return 0, why
	}
	return min(gone, reported), ""
}

// unattendedFor returns for how long no agent on a member's own host has been in charge of the member: the agent is
// gone, or reports that the member can never come back. While an agent is in charge, an etcd that does not run was
// stopped on purpose or is about to be started.
func (v View) unattendedFor(m Member) (since time.Duration, why string) {
	switch {
	case m.Live:
		return 0, "it answers this host"
	case v.cannotRead(RecordOp) || v.cannotRead(RecordHost):
		return 0, "a record in etcd cannot be read and may be its host's"
	case v.Op.info().down && (v.Op.MemberID == m.ID || v.Op.PeerURL == m.PeerURL) && !v.reportsLost(m):
		return 0, "it was taken down on purpose"
	}
	since = m.AgentGoneFor
	for _, h := range v.Hosts {
		switch here := h.PeerURL == m.PeerURL; {
		case here && h.MemberLostFor > 0:
			since = h.MemberLostFor
		case here || m.Name != "" && h.Name == m.Name: // the host record may have a different peer URL
			return 0, "its host record has not expired, so its own quorumd is still in charge"
		}
	}
	if since == 0 {
		return 0, "its host record has only just expired, so its own quorumd may still run"
	}
	return since, ""
}

// reportsLost reports whether a member's host reports that the member can never come back.
func (v View) reportsLost(m Member) bool {
	h, present := v.hostOf(m)
	return present && h.MemberLostFor > 0
}

// reportAwaited returns how soon a voter's host observes the cluster again while an operation needs the host's report
// on dead members, or just after a voter has stopped answering; 0 otherwise.
func (v View) reportAwaited() time.Duration {
	if roleOf(v) != RoleVoter {
		return 0
	}
	asked := v.Op != nil && NeedsDeadReports(v.Op.Kind) && AwaitsRecords(v.Op.Kind, v.Op.Phase)
	if asked && v.Pause == nil && v.Op.Elapsed < v.Limits.LearnerStall { // after that time, the operation ends
		return lookSoon
	}
	for m := range v.Cluster.voters() {
		if v.Op == nil && v.Limits.DeadGrace > 0 && !m.Live && m.DownFor < silenceWindow {
			return lookSoon
		}
	}
	return 0
}

// silenceWindow limits two periods: from a voter's last answer until the reports show whether it is dead, and from the
// end of its grace period until another host has recorded its replacement.
const silenceWindow = 15 * time.Second

// repairDue returns how soon this host observes the cluster again if it may replace a voter, or must report whether one
// is dead: when a dead voter's grace period ends, and every lookSoon while this host waits for the reports of the hosts
// in behind or for the record of the replacement. If soon is 0, the next round is early enough.
func (v View) repairDue() (soon time.Duration, behind []string) {
	role := roleOf(v)
	if role != RoleVoter && role != RoleStandby && role != RoleSpare || v.Op != nil || v.Pause != nil || v.Resting ||
		v.Limits.DeadGrace == 0 || !v.Cluster.Reachable || v.foreign() {
		return 0, nil
	}
	for m := range v.Cluster.voters() {
		since, _ := v.reportedDead(m)
		left := v.Limits.DeadGrace - since
		switch {
		case m.Live:
		case since == 0 && m.DownFor < silenceWindow && role != RoleVoter:
			return lookSoon, v.missingReports(m)
		case since > 0 && left > 0 && (soon == 0 || left < soon):
			soon = left
		case since > 0 && left <= 0 && left > -silenceWindow && role == RoleVoter:
			return lookSoon, nil
		}
	}
	return soon, nil
}

// missingReports returns the IDs of the other hosts with a live voter that do not report a member dead.
func (v View) missingReports(m Member) (ids []string) {
	for voter := range v.Cluster.voters() {
		if h, present := v.hostOf(voter); voter.Live && present && !h.Own {
			if _, why := v.deadReport(voter, m); why != "" {
				ids = append(ids, h.ID)
			}
		}
	}
	return ids
}

// deadReports returns for how long all live voters' agents have reported a member dead without a contradiction from any
// host; 0 and the reason if they have not.
func (v View) deadReports(m Member) (since time.Duration, why string) {
	since = Never
	leader, reports := false, 0
	for voter := range v.Cluster.voters() {
		if !voter.Live || voter.ID == m.ID {
			continue
		}
		reportedFor, why := v.deadReport(voter, m)
		if why != "" {
			return 0, why
		}
		leader = leader || voter.Leader
		reports++
		since = min(since, reportedFor)
	}
	for _, h := range v.Hosts { // no host may contradict, even if its report is not required
		if s, reports := h.reportOn(m.ID); reports && (h.Own || v.isMember(h.PeerURL)) && h.PeerURL != m.PeerURL {
			if why := contradiction(h.Name, s); why != "" {
				return 0, why
			}
		}
	}
	switch {
	case !leader:
		return 0, "no live leader is known that could confirm it"
	case reports < 2 && !m.Learner: // one report suffices for a learner, which does not count towards the quorum
		return 0, "only one live voter is left, but two must confirm it"
	}
	return max(since, 1), ""
}

// deadReport returns for how long the agent of a live voter has reported a member dead; 0 and the reason if it has not.
func (v View) deadReport(voter, m Member) (since time.Duration, why string) {
	h, present := v.hostOf(voter)
	if !present {
		return 0, "voter " + voter.label() + " has no quorumd that reports whether it reaches that member"
	}
	s, found := h.reportOn(m.ID)
	if !found {
		return 0, voter.label() + " has not reported yet whether it reaches that member"
	}
	if why := contradiction(voter.label(), s); why != "" {
		return 0, why
	}
	if voter.Leader && !s.LinkKnown() {
		return 0, fmt.Sprintf("the etcd of %s, the leader, does not report whether it receives messages from that "+
			"member", voter.label())
	}
	return s.For, ""
}

// contradiction returns why a member counts as alive according to the report of the host with that name; empty if the
// report does not contradict.
func contradiction(name string, r record.Reachability) string {
	switch {
	case r.Unsure():
		return name + " cannot determine whether it reaches that member"
	case !r.Lost():
		return name + " reaches it"
	case r.Link == record.LinkUp:
		return "the etcd of " + name + " receives messages from it"
	}
	return ""
}

// reportOn returns what a host reports about a member, and whether it reports on that member.
func (h Host) reportOn(id uint64) (record.Reachability, bool) {
	i := slices.IndexFunc(h.Sees, func(s record.Reachability) bool { return s.MemberID == record.MemberID(id) })
	if i < 0 {
		return record.Reachability{}, false
	}
	return h.Sees[i], true
}

// isMember reports whether the host at a peer URL has a member.
func (v View) isMember(peerURL string) bool {
	return slices.ContainsFunc(v.Cluster.Members, func(m Member) bool { return m.PeerURL == peerURL })
}

// OwnMemberLost reports whether this host's member can never come back. The host publishes this.
func OwnMemberLost(v View) bool {
	m, listed := v.member()
	if !listed || m.Live || v.workInProgress() {
		return false
	}
	_, gone := dataGone(v, m)
	return gone || v.gaveUp(m)
}

// ReportsDeadVoters reports whether a host with that role publishes whether it reaches each member. Spares do not,
// because there may be many. A joining host does, because it may soon be a voter, and no member counts as dead while a
// live voter's report is missing.
func (r Role) ReportsDeadVoters() bool {
	return r == RoleVoter || r == RoleStandby || r == RoleLearner || r == RoleJoining
}

// NeedsDeadReports reports whether an operation of that kind waits until every voter's agent has probed the voter to be
// replaced since the operation was recorded.
func NeedsDeadReports(kind string) bool { return kind == KindReplace }

// Dead is a voter that all required hosts report dead.
type Dead struct {
	Member Member
	For    time.Duration
	By     []string // the voters whose agents report it
	// In is the time until another host may replace the voter; 0 if that time has passed, or if dead voters are not
	// replaced.
	In time.Duration
	// Held is why no host replaces it; empty if one will.
	Held        string
	Replacement string // the host that is replacing it; empty if none is yet
	// Surplus reports that there is a surplus voter, so the dead voter is removed without a replacement.
	Surplus bool
}

// DeadVoters returns the voters that are dead according to the last observations, and what happens to each.
func DeadVoters(v View) []Dead {
	if !v.Cluster.Reachable || v.foreign() {
		return nil
	}
	var all []Dead
	for m := range v.Cluster.voters() {
		since, _ := v.reportedDead(m)
		if since == 0 {
			continue
		}
		d := Dead{Member: m, For: since, In: max(0, v.Limits.DeadGrace-since), Surplus: v.hasSurplus()}
		for voter := range v.Cluster.voters() {
			if voter.Live {
				d.By = append(d.By, voter.label())
			}
		}
		slices.Sort(d.By)
		if d.Held = v.deadBlocked(m, d.In == 0); v.Op.replacesMember(m) {
			d.Held, d.Replacement = "", v.Op.HostName
		}
		all = append(all, d)
	}
	return all
}

// deadBlocked returns why no host replaces a dead voter; empty if one may. over reports whether the grace period is
// over. After that, a host that still waits with VoterNotLive has not reported the voter dead for long enough, for
// example because its agent has restarted.
func (v View) deadBlocked(m Member, over bool) string {
	if why := v.repairBlocked("repair.dead", v.Limits.DeadGrace); why != "" {
		return why
	}
	if r, holds := vetoed(v, vetoSeveralDown, vetoReplaceAtRisk, vetoRepairsUnreadable, vetoRepairsSpent,
		vetoReplaceEven); holds {
		return r.Text
	}
	if text, last := lastOfUpgrade(v, m, Version{}); last {
		return text
	}
	if v.hasSurplus() {
		return v.noRemover()
	}
	for learner := range v.Cluster.passing() { // only the learner's own host could replace the voter
		h, present := v.hostOf(learner)
		switch {
		case !present || h.Role != RoleStandby:
			return learner.label() + " is a learner, and no other learner is added next to it"
		case over && !v.caughtUp(learner):
			return fmt.Sprintf("the standby %s has not yet stayed within %d entries of the leader for %s",
				learner.label(), v.Limits.PromoteLag, durationfmt.Text(v.Limits.SteadyLag))
		}
		return v.noneReady(m, over, func(other Host) bool { return other.ID == h.ID })
	}
	return v.noneReady(m, over, func(Host) bool { return true })
}

// noRemover returns why no other voter's host removes a dead surplus voter; empty if one may.
func (v View) noRemover() string {
	for m := range v.Cluster.voters() {
		if h, present := v.hostOf(m); m.Live && present && h.Manage {
			return ""
		}
	}
	return "no agent of a live voter is in mode manage"
}

// repairBlocked returns why no voter is replaced now; empty if one may be. setting is the configuration key of the
// grace period.
func (v View) repairBlocked(setting string, grace time.Duration) string {
	switch {
	case grace == 0:
		return setting + " is off"
	case v.Pause != nil:
		return "the cluster is paused by " + v.Pause.By
	case v.Op != nil:
		return "the " + v.Op.label() + " must end first"
	case v.blocksAll():
		return "a record in etcd cannot be read"
	}
	return ""
}

// noReplacement returns why no host could replace a voter; empty if one could.
func (v View) noReplacement(m Member) string {
	return v.noneReady(m, false, func(Host) bool { return true })
}

// noneReady returns why none of the hosts that among selects could replace a voter; empty if one could.
func (v View) noneReady(dead Member, over bool, among func(Host) bool) string {
	var why []string
	for _, h := range v.Hosts {
		switch {
		case h.Role != RoleSpare && h.Role != RoleStandby || h.Learner || h.PeerURL == dead.PeerURL || !among(h):
		case !h.Manage:
			why = append(why, h.Name+" only observes")
		case h.Waiting == "" || h.Waiting == VoterNotLive && !over:
			return ""
		case h.Waiting == VoterNotLive:
			why = append(why, h.Name+" has not reported it dead for long enough (its agent may have just started)")
		default:
			why = append(why, fmt.Sprintf("%s waits for %s", h.Name, h.Waiting))
		}
	}
	if len(why) == 0 {
		return "there is no standby and no spare"
	}
	return "no standby or spare is ready: " + strings.Join(why[:min(len(why), mostNamed)], ", ")
}

// mostNamed limits the number of hosts that a reason names.
const mostNamed = 3

// Text describes the dead voter, and what happens to it and when.
func (d Dead) Text(grace time.Duration) string {
	text := fmt.Sprintf("%s has been dead for %s, reported by %s", d.Member.label(), durationfmt.Seconds(d.For),
		strings.Join(d.By, ", "))
	return text + fate(d.Surplus, d.Replacement, d.Held, d.In, grace, fmt.Sprintf(" after %s", durationfmt.Text(grace)))
}

// fate describes what happens to a dead or unhealthy voter: whether a host replaces it, when, or why none does. Once
// the grace period is over, the text of a blocked replacement includes the parameter after. A surplus voter is removed
// without a replacement.
func fate(tooMany bool, replacement, held string, in, grace time.Duration, after string) string {
	if tooMany {
		return fateOfSurplus(replacement, held, in, grace, after)
	}
	switch {
	case replacement != "":
		return "; " + replacement + " is replacing it"
	case grace == 0:
		return "; no host replaces it, because " + held
	case held != "" && in > 0:
		return fmt.Sprintf("; another host may replace it in %s, but: %s", durationfmt.Seconds(in), held)
	case held != "":
		return fmt.Sprintf("; another host may replace it%s, but: %s", after, held)
	case in > 0:
		return fmt.Sprintf("; another host replaces it in %s", durationfmt.Seconds(in))
	}
	return "; another host is about to replace it"
}

// fateOfSurplus is fate for a surplus voter.
func fateOfSurplus(replacement, held string, in, grace time.Duration, after string) string {
	const why = " as a surplus voter"
	switch {
	case replacement != "":
		return "; " + replacement + " removes it" + why
	case grace == 0:
		return "; no host removes it, because " + held
	case held != "" && in > 0:
		return fmt.Sprintf("; it may be removed in %s, but: %s", durationfmt.Seconds(in), held)
	case held != "":
		return fmt.Sprintf("; it may be removed%s, but: %s", after, held)
	case in > 0:
		return fmt.Sprintf("; it will be removed in %s%s", durationfmt.Seconds(in), why)
	}
	return "; it is about to be removed" + why
}

// deadVoterSummary describes which of the voters that do not answer are dead, and what happens to them. If dead voters
// are replaced, the text also explains why each of the others does not count as dead.
func (v View) deadVoterSummary() (text string, dead bool) {
	for _, d := range DeadVoters(v) {
		text, dead = text+"; "+d.Text(v.Limits.DeadGrace), true
	}
	for m := range v.Cluster.voters() {
		if m.Live || v.Limits.DeadGrace == 0 {
			continue
		}
		if since, why := v.reportedDead(m); since == 0 {
			text += fmt.Sprintf("; %s does not count as dead: %s", m.label(), why)
		}
	}
	return text, dead
}

// dead returns the first voter, by member ID, that has been dead for the whole grace period; none if dead voters are
// not replaced.
func (v View) dead() (Member, bool) {
	for m := range v.Cluster.voters() {
		if v.Cluster.Reachable && !v.foreign() && v.isDead(m) {
			return m, true
		}
	}
	return Member{}, false
}

func (v View) isDead(m Member) bool {
	since, _ := v.deadFor(m)
	return v.Limits.DeadGrace > 0 && !m.Live && since >= v.Limits.DeadGrace
}
