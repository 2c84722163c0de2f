// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"fmt"
	"slices"
	"time"
)

// A voter is dead only if every agent that must report so does. One agent alone is not enough, and one contradiction
// keeps a member alive: if any host reaches it, or the leader's etcd is connected to it, it may still serve.

// Sight is what a host's agent reports about a member. It reports nothing about one that it has not probed often
// enough.
type Sight struct {
	MemberID uint64
	// Lost: in the last probes, more than once in a row, neither its client nor its peer port accepted a connection.
	// This includes refused connections: the machine is up, but neither etcd nor anything else listens.
	Lost bool
	// Unsure: it is not lost, and neither port is known to accept a connection.
	Unsure bool
	// Connected: that host's own etcd heard from it recently, if that is known. It is read only for a lost member.
	Connected, ConnectedKnown bool
	Domain                    string // for a lost member: its host's failure domain, if known
	// For is how long this report has been unchanged, as observed by the deciding agent.
	For time.Duration
}

// deadFor returns for how long all live voters' agents and the leader's etcd have reported a member dead, without a
// contradiction; 0 and the reason if it is not dead. Decisions use it: what was not observed in this round proves
// nothing.
func (v View) deadFor(m Member) (since time.Duration, why string) {
	if !v.Cluster.Reachable || !v.Cluster.Fresh || v.Resting && !v.HostsFresh {
		return 0, "the cluster was not observed in this round"
	}
	return v.reportedDead(m)
}

// calledDead is deadFor by the last observations.
func (v View) reportedDead(m Member) (since time.Duration, why string) {
	gone, why := v.unattendedFor(m)
	if why != "" {
		return 0, why
	}
	words, why := v.deadReports(m)
	if why != "" {
		return 0, why
	}
	return min(gone, words), ""
}

// abandoned returns since when no agent on a member's own host has been in charge of it: the agent is gone, or reports
// that the member can never come back. A present agent answers for an etcd that does not run: it was stopped on
// purpose, or is about to be started.
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
		case here || m.Name != "" && h.Name == m.Name: // at another URL: it reports about another member
			return 0, "its host record has not expired, so its own quorumd is still in charge"
		}
	}
	if since == 0 {
		return 0, "its host record has only just expired, so its own quorumd may still run"
	}
	return since, ""
}

// saysLost reports whether a member's host reports that the member can never come back.
func (v View) reportsLost(m Member) bool {
	h, present := v.hostOf(m)
	return present && h.MemberLostFor > 0
}

// wordAwaited returns how soon a voter's host probes again while its report on dead members is awaited, by an operation
// or because a voter has just fallen silent; 0 if it is not.
func (v View) reportAwaited() time.Duration {
	if roleOf(v) != RoleVoter {
		return 0
	}
	asked := v.Op != nil && NeedsDeadReports(v.Op.Kind) && AwaitsRecords(v.Op.Kind, v.Op.Phase)
	if asked && v.Pause == nil && v.Op.Elapsed < v.Limits.LearnerStall { // it ends then, unless it is paused
		return lookSoon
	}
	for m := range v.Cluster.voters() {
		if v.Op == nil && v.Limits.DeadGrace > 0 && !m.Live && m.DownFor < silenceWindow {
			return lookSoon
		}
	}
	return 0
}

// fallsSilent is how long it takes to know whether a voter that has just fallen silent is dead, and, once its grace is
// over, until another host has recorded its replacement.
const silenceWindow = 15 * time.Second

// repairNears returns how soon a host that may replace a voter, or must report whether one is dead, looks again: when
// the grace of a dead voter ends; soon while the reports of the hosts in behind are awaited; soon while the record of
// the replacement is awaited. 0 otherwise.
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

// untold returns the hosts of the live voters that do not report a member dead.
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

// words returns for how long every required host has reported a member dead without any other contradicting it.
func (v View) deadReports(m Member) (since time.Duration, why string) {
	since = Never
	leader, speakers := false, 0
	for voter := range v.Cluster.voters() {
		if !voter.Live || voter.ID == m.ID {
			continue
		}
		said, why := v.deadReport(voter, m)
		if why != "" {
			return 0, why
		}
		leader = leader || voter.Leader
		speakers++
		since = min(since, said)
	}
	for _, h := range v.Hosts { // hosts that need not report it dead must not contradict it
		if s, says := h.reportOn(m.ID); says && (h.Own || v.isMember(h.PeerURL)) && h.PeerURL != m.PeerURL {
			if why := s.contradicts(h.Name); why != "" {
				return 0, why
			}
		}
	}
	switch {
	case !leader:
		return 0, "no live leader is known that could confirm it"
	case speakers < 2 && !m.Learner: // a member that does not vote is not needed for the quorum
		return 0, "only one live voter is left, and two must confirm it"
	}
	return max(since, 1), ""
}

// word returns for how long the agent of a live voter has reported a member dead.
func (v View) deadReport(voter, m Member) (since time.Duration, why string) {
	h, present := v.hostOf(voter)
	if !present {
		return 0, "voter " + voter.label() + " has no quorumd that reports whether it reaches it"
	}
	s, says := h.reportOn(m.ID)
	if !says {
		return 0, voter.label() + " has not reported yet whether it reaches it"
	}
	if why := s.contradicts(voter.label()); why != "" {
		return 0, why
	}
	if voter.Leader && !s.ConnectedKnown {
		return 0, fmt.Sprintf("the etcd of %s, the leader, does not report whether it hears from it", voter.label())
	}
	return s.For, ""
}

// contradicts explains how a report keeps a member alive; empty if it does not.
func (s Sight) contradicts(name string) string {
	switch {
	case s.Unsure:
		return name + " cannot determine whether it reaches it"
	case !s.Lost:
		return name + " reaches it"
	case s.ConnectedKnown && s.Connected:
		return "the etcd of " + name + " hears from it"
	}
	return ""
}

// sight returns what a host reports about a member, if anything.
func (h Host) reportOn(id uint64) (Sight, bool) {
	i := slices.IndexFunc(h.Sees, func(s Sight) bool { return s.MemberID == id })
	if i < 0 {
		return Sight{}, false
	}
	return h.Sees[i], true
}

// isMember reports whether the host at a peer URL has a member.
func (v View) isMember(peerURL string) bool {
	return slices.ContainsFunc(v.Cluster.Members, func(m Member) bool { return m.PeerURL == peerURL })
}

// OwnMemberLost reports whether this host's member can never come back; it is published for the others.
func OwnMemberLost(v View) bool {
	m, listed := v.member()
	if !listed || m.Live || v.workInProgress() {
		return false
	}
	_, gone := dataGone(v, m)
	return gone || v.gaveUp(m)
}

// ReportsDeadVoters reports whether a host of that role counts in deciding who is dead. Spares, which are many, do not.
// A joining host does: a member that reports nothing about a lost one counts as reaching it.
func (r Role) ReportsDeadVoters() bool { return r == RoleVoter || r == RoleStandby || r == RoleJoining }

// NeedsDeadReports reports whether an operation of that kind waits for every voter's agent to report on the replaced
// voter by a probe that is younger than its record.
func NeedsDeadReports(kind string) bool { return kind == KindReplace }
