// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"fmt"
	"slices"
	"time"
)

// Who is dead, and by whose word. Nobody is dead of whom one agent alone says so, and one contradiction keeps everybody
// alive: a member that anybody reaches, or that the leader's etcd is connected to, may still serve.

// Sight is what a host's agent says of a member. Of one that it has not looked at often enough it says nothing.
type Sight struct {
	MemberID uint64
	// Lost: when last looked at, more than once in a row, neither its client nor its peer port took a connection. Also
	// where both refused it: the machine is there, and neither etcd nor anything else listens.
	Lost bool
	// Unsure: it is not lost, and neither port is known to take a connection.
	Unsure bool
	// Connected: that host's own etcd has heard of it lately, where that is known. It is asked of one that is lost.
	Connected, ConnectedKnown bool
	Domain                    string // of one that is lost: in which failure domain its host was, if that is known
	// For is since when this word stands, without another in between, as the deciding agent has seen it.
	For time.Duration
}

// deadFor gives for how long a member has been dead, reported by all live voters' agents, and the leader's etcd, with
// no contradiction; 0 and the reason when it is not. It is for deciding: what was not seen in this round proves
// nothing.
func (v View) deadFor(m Member) (since time.Duration, why string) {
	if !v.Cluster.Reachable || !v.Cluster.Fresh || v.Resting && !v.Looked {
		return 0, "the cluster was not observed in this round"
	}
	return v.calledDead(m)
}

// calledDead is deadFor by what was seen last.
func (v View) calledDead(m Member) (since time.Duration, why string) {
	gone, why := v.abandoned(m)
	if why != "" {
		return 0, why
	}
	words, why := v.words(m)
	if why != "" {
		return 0, why
	}
	return min(gone, words), ""
}

// abandoned gives since when nobody on a member's own host has held it: its agent is gone, or says itself that the
// member can never come back. An agent that is there answers for an etcd that does not run: it was stopped in order, or
// is about to be started.
func (v View) abandoned(m Member) (since time.Duration, why string) {
	switch {
	case m.Live:
		return 0, "it answers this host"
	case v.cannotRead(RecordOp) || v.cannotRead(RecordHost):
		return 0, "a record in etcd cannot be read and may be its host's"
	case v.Op.info().down && (v.Op.MemberID == m.ID || v.Op.PeerURL == m.PeerURL) && !v.saysLost(m):
		return 0, "it was taken down on purpose"
	}
	since = m.AgentGoneFor
	for _, h := range v.Hosts {
		switch here := h.PeerURL == m.PeerURL; {
		case here && h.MemberLostFor > 0:
			since = h.MemberLostFor
		case here || m.Name != "" && h.Name == m.Name: // at another URL: what it says of its member is not of this one
			return 0, "its host record has not expired, so its own quorumd is still in charge"
		}
	}
	if since == 0 {
		return 0, "its host record has only just expired, so its own quorumd may still run"
	}
	return since, ""
}

// saysLost tells whether the host of a member says that it can never come back.
func (v View) saysLost(m Member) bool {
	h, present := v.hostOf(m)
	return present && h.MemberLostFor > 0
}

// wordAwaited gives how soon a voter's host looks again while its word on who is dead is waited for: by an operation,
// or because a voter has only just fallen silent; 0 when it is not.
func (v View) wordAwaited() time.Duration {
	if roleOf(v) != RoleVoter {
		return 0
	}
	asked := v.Op != nil && NeedsDeadReports(v.Op.Kind) && Asks(v.Op.Kind, v.Op.Phase)
	if asked && v.Pause == nil && v.Op.Elapsed < v.Limits.LearnerStall { // it ends then, unless it is held
		return lookSoon
	}
	for m := range v.Cluster.voters() {
		if v.Op == nil && v.Limits.DeadGrace > 0 && !m.Live && m.DownFor < fallsSilent {
			return lookSoon
		}
	}
	return 0
}

// fallsSilent is how long it takes until it is known of a voter that has just fallen silent whether it is dead, and,
// once its time is over, until another host has recorded that it takes its place.
const fallsSilent = 15 * time.Second

// repairNears gives how soon a host that may replace a voter, or must say whether one is dead, looks again: at the
// moment at which the time of a dead one is over; soon while it waits for what others say of one that has just fallen
// silent, behind; and soon while the record of what follows is awaited. 0 when none of that is so.
func (v View) repairNears() (soon time.Duration, behind []string) {
	role := roleOf(v)
	if role != RoleVoter && role != RoleStandby && role != RoleSpare || v.Op != nil || v.Pause != nil || v.Resting ||
		v.Limits.DeadGrace == 0 || !v.Cluster.Reachable || v.foreign() {
		return 0, nil
	}
	for m := range v.Cluster.voters() {
		since, _ := v.calledDead(m)
		left := v.Limits.DeadGrace - since
		switch {
		case m.Live:
		case since == 0 && m.DownFor < fallsSilent && role != RoleVoter:
			return lookSoon, v.untold(m)
		case since > 0 && left > 0 && (soon == 0 || left < soon):
			soon = left
		case since > 0 && left <= 0 && left > -fallsSilent && role == RoleVoter:
			return lookSoon, nil
		}
	}
	return soon, nil
}

// untold gives the hosts of the live voters that do not say that a member is dead.
func (v View) untold(m Member) (ids []string) {
	for voter := range v.Cluster.voters() {
		if h, present := v.hostOf(voter); voter.Live && present && !h.Own {
			if _, why := v.word(voter, m); why != "" {
				ids = append(ids, h.ID)
			}
		}
	}
	return ids
}

// words gives for how long all who must have said that a member is dead, and nobody else otherwise.
func (v View) words(m Member) (since time.Duration, why string) {
	since = Never
	leader, speakers := false, 0
	for voter := range v.Cluster.voters() {
		if !voter.Live || voter.ID == m.ID {
			continue
		}
		said, why := v.word(voter, m)
		if why != "" {
			return 0, why
		}
		leader = leader || voter.Leader
		speakers++
		since = min(since, said)
	}
	for _, h := range v.Hosts { // those who need not say so must not say otherwise
		if s, says := h.sight(m.ID); says && (h.Own || v.isMember(h.PeerURL)) && h.PeerURL != m.PeerURL {
			if why := s.contradicts(h.Name); why != "" {
				return 0, why
			}
		}
	}
	switch {
	case !leader:
		return 0, "no live leader is known that could confirm it"
	case speakers < 2 && !m.Learner: // one that does not vote is missed by nobody
		return 0, "only one live voter is left, and two must confirm it"
	}
	return max(since, 1), ""
}

// word gives for how long the agent of a live voter has said that a member is dead.
func (v View) word(voter, m Member) (since time.Duration, why string) {
	h, present := v.hostOf(voter)
	if !present {
		return 0, "voter " + voter.label() + " has no quorumd that reports whether it reaches it"
	}
	s, says := h.sight(m.ID)
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

// contradicts says how a word keeps a member alive; empty when it does not.
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

// sight gives what a host says of a member, if it does.
func (h Host) sight(id uint64) (Sight, bool) {
	i := slices.IndexFunc(h.Sees, func(s Sight) bool { return s.MemberID == id })
	if i < 0 {
		return Sight{}, false
	}
	return h.Sees[i], true
}

// isMember tells whether the host at a peer URL has a member.
func (v View) isMember(peerURL string) bool {
	return slices.ContainsFunc(v.Cluster.Members, func(m Member) bool { return m.PeerURL == peerURL })
}

// OwnMemberLost tells whether this host's member can never come back, for the others to know.
func OwnMemberLost(v View) bool {
	m, listed := v.member()
	if !listed || m.Live || v.workUnderWay() {
		return false
	}
	_, gone := dataGone(v, m)
	return gone || v.gaveUp(m)
}

// ReportsDeadVoters tells whether a host of that role has a word in who is lost. Spares, which are many, have none. One
// that joins has: from a member that says nothing of it, a lost one counts as reached.
func (r Role) ReportsDeadVoters() bool { return r == RoleVoter || r == RoleStandby || r == RoleJoining }

// NeedsDeadReports tells whether an operation of that kind waits for what every voter's agent says of the one that it
// replaces, by a look that is younger than its record.
func NeedsDeadReports(kind string) bool { return kind == KindReplace }
