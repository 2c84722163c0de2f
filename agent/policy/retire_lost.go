// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"fmt"
	"slices"
)

// A host may be lost while an operation, such as maintenance, has taken it down: the operation would block all others
// until the host is back. An operator who knows that the host will not come back retires it as lost. Its voter is down
// already, so no other host joins first: the operation is released, the member is removed at the operator's request,
// and then another host joins. The host stays out even if it comes back.

// AgainstRetireLost returns why the host with that ID may not be retired as lost, or nil. A host whose agent runs is
// not lost: that agent ends the operation.
func AgainstRetireLost(v View, id string) *Refusal {
	if r := AgainstRemovals(v); r != nil { // checks the mode, the connection and a pause
		return r
	}
	switch {
	case v.Recovery != nil:
		return conflicts(Recovering, "a recovery plan is in progress", "quorumctl recover status")
	case v.Op == nil || !TakesDown(v.Op.Kind) || v.Op.Host != id:
		return conflicts("", "no operation has taken it down", "if quorumd runs there: quorumctl retire HOST, without "+
			"--lost; otherwise remove its member: quorumctl member remove NAME --reason '<why>'")
	case v.Op.Host == v.Self.ID:
		return conflicts("", "it is this host", "quorumctl maintenance off")
	case v.cannotRead(RecordHost):
		return conflicts(RecordUnreadable, "a host record cannot be read; it may be the record of "+v.Op.HostName+
			", so quorumd may run there", "quorumctl explain")
	case slices.ContainsFunc(v.Hosts, func(h Host) bool { return h.ID == id }):
		return conflicts("", "quorumd runs on "+v.Op.HostName+", or its host record has not expired yet",
			"if quorumd runs: quorumctl maintenance off there, then quorumctl retire without --lost; if the host is "+
				"lost, power it off and try again in a minute")
	}
	m, listed := v.LostMember()
	switch {
	case !listed && v.listed(v.Op.MemberID):
		return conflicts(OperationRejected, "the record of its operation names a member with a different peer URL",
			"quorumctl operation show; then quorumctl operation release --force --reason '<why>'")
	case !listed:
		return nil
	case m.Live && m.Learner:
		return conflicts(MemberLive, "its learner answers", "quorumctl explain on "+v.Op.HostName)
	case m.AgentGoneFor == 0 || slices.ContainsFunc(v.Hosts, func(h Host) bool { return h.Name == v.Op.HostName }):
		return conflicts("", "quorumd runs on "+v.Op.HostName+" under a different host ID",
			"quorumctl operation release --force --reason '<why>', then quorumctl retire without --lost")
	}
	v.Op = nil
	return AgainstRemoval(v, Removal{MemberID: m.ID}, true) // true: a dead voter is removed without a new snapshot
}

// LostMember returns the member of the host whose operation is in flight, and whether there is one. Its peer URL must
// be the one in the operation's record, and so must its ID, if the record has one.
func (v View) LostMember() (Member, bool) {
	i := slices.IndexFunc(v.Cluster.Members, func(m Member) bool {
		return v.Op != nil && m.PeerURL == v.Op.PeerURL && (v.Op.MemberID == 0 || m.ID == v.Op.MemberID)
	})
	if i < 0 {
		return Member{}, false
	}
	return v.Cluster.Members[i], true
}

// RetireLostPlan returns the steps of retiring the host of the operation in flight as lost.
func RetireLostPlan(v View) (steps []PlanStep) {
	name := v.Op.HostName
	voters, live := v.Cluster.Counts()
	add := func(s PlanStep) {
		s.Voters, s.Tolerance = voters, Tolerance(voters, live)
		steps = append(steps, s)
	}
	ends := "the operation of " + name + " ends without waiting for the host"
	if v.Rollout != nil && v.Rollout.Runs {
		ends += ", and the rollout stops"
	}
	add(PlanStep{Text: ends})
	m, listed := v.LostMember()
	if listed {
		if !m.Learner {
			voters--
		}
		text := fmt.Sprintf("member %s (%x) is removed by %s", m.label(), m.ID, v.Self.Name)
		add(PlanStep{Text: text, Change: PlanLeaves, Host: name, Final: true})
	}
	v = withoutLost(v, m)
	switch joins := joiners(v); {
	case voters-v.retiring() >= v.Target.Voters:
	case len(joins) == 0:
		voters, live = voters+1, live+1
		add(PlanStep{}.anyJoins(noHostReady))
	default:
		voters, live = voters+1, live+1
		add(PlanStep{}.joins(joins[0]))
	}
	add(PlanStep{Text: name + " stays out of the cluster until the retirement is undone"})
	return steps
}

// withoutLost returns the view after the operation in flight has ended and the lost member is removed. Unless another
// voter is down, hosts that have published VOTER_NOT_LIVE as their reason to wait count as ready in this view.
func withoutLost(v View, lost Member) View {
	v.Op, v.Hosts = nil, slices.Clone(v.Hosts)
	v.Cluster.Members = slices.DeleteFunc(slices.Clone(v.Cluster.Members), func(m Member) bool {
		return m.ID == lost.ID
	})
	if voters, live := v.Cluster.Counts(); voters > live { // another voter is down, too, and hosts still wait for it
		return v
	}
	for i := range v.Hosts {
		if v.Hosts[i].Waiting == VoterNotLive {
			v.Hosts[i].Waiting = ""
		}
	}
	return v
}
