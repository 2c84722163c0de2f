// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"fmt"
	"slices"
)

// An operator retires a host to keep it out of the cluster for good, whether or not it is healthy. If it holds a voter,
// another host joins first; then the voter leaves, as in a cluster that becomes smaller. A retired standby leaves at
// once. The record in etcd has no lease, so the host stays out across reboots and reinstallations until an operator
// undoes the retirement. If the retired host's voter is dead, it is replaced or removed like any other dead voter.

// Retired is a host that an operator has retired.
type Retired struct {
	Host       string // its ID
	PeerURL    string // empty if its record cannot be read: the host stays out, and its member stays
	MemberID   uint64 // of its member when it was retired; 0 if it had none
	By, Reason string
}

// retirement returns the retirement of the host with that ID and whether there is one.
func (v View) retirement(id string) (Retired, bool) {
	i := slices.IndexFunc(v.Retired, func(r Retired) bool { return r.Host == id })
	if i < 0 {
		return Retired{}, false
	}
	return v.Retired[i], true
}

// isRetired reports whether a host is retired, or might be: the record of its retirement cannot be read.
func (v View) isRetired(id string) bool {
	_, is := v.retirement(id)
	return is
}

// retires reports whether a member belongs to a retired host.
func (v View) retires(m Member) bool {
	return slices.ContainsFunc(v.Retired, func(r Retired) bool { return v.Owns(r, m) })
}

// Owns reports whether a member belongs to a retired host. A new host may have the address of a retired one, so the ID
// of the host that is present at the address decides, if the record of the retirement is readable. If no host is
// present there, the member ID in that record decides.
func (v View) Owns(r Retired, m Member) bool {
	h, present := v.hostOf(m)
	if present {
		return h.ID == r.Host && r.PeerURL != ""
	}
	return r.MemberID != 0 && m.ID == r.MemberID
}

// retiring returns the number of voters on retired hosts: for each of them, another host joins. While the size of the
// cluster cannot be read, no host joins, and retiring returns 0.
func (v View) retiring() int {
	n := 0
	if v.cannotRead(RecordSize) {
		return 0
	}
	for m := range v.Cluster.voters() {
		if v.retires(m) {
			n++
		}
	}
	return n
}

// retired reports whether this host is retired.
func retired(v View) (string, bool) {
	r, is := v.retirement(v.Self.ID)
	if !is {
		return "", false
	}
	text := fmt.Sprintf("retired by %s: %s", r.By, r.Reason)
	if m, listed := v.member(); listed {
		if r.PeerURL == "" {
			return text + "; its member stays", true
		}
		if !m.Learner {
			return text + "; its voter leaves once another host has joined", true
		}
		return text + "; its learner leaves", true
	}
	return text + "; it can be switched off", true
}

// surplusVoters returns how many voters exceed the size of the cluster, to decide whether a member may leave. Voters on
// retired hosts count only if the member is on one, too: otherwise another voter could leave in their place.
func (v View) surplusVoters(m Member) int {
	voters, _ := v.Cluster.Counts()
	if !v.retires(m) {
		voters -= v.retiring()
	}
	return voters - v.Target.Voters
}

// AgainstRetire returns why an operator may not retire the host with that ID now, or nil.
func AgainstRetire(v View, id string) *Refusal {
	if r := AgainstRemovals(v); r != nil { // mode, connection and pause
		return r
	}
	i := slices.IndexFunc(v.Hosts, func(h Host) bool { return h.ID == id })
	switch {
	case v.Recovery != nil:
		return conflicts(Recovering, "a recovery plan is in progress", "quorumctl recover status")
	case i < 0:
		return &Refusal{
			NoSuch, "", "no host with that name or ID runs quorumd",
			"quorumctl status lists the hosts; the member of a host that is gone: quorumctl member remove NAME " +
				"--reason '<why>'",
		}
	case v.isRetired(id):
		return nil
	}
	h := v.Hosts[i]
	m, voter := v.voterOf(h)
	switch {
	case h.InOperation || v.Op.names(h, m):
		return conflicts(OperationInFlight, h.Name+" is in an operation", "wait for it: quorumctl operation show")
	case !voter:
		return nil
	case !h.Manage:
		return conflicts(ModeObserve, "quorumd on "+h.Name+" only observes",
			"set mode: manage there and reload quorumd")
	}
	spares := len(candidates(v, RoleVoter, selfReady(v)))
	voters, _ := v.Cluster.Counts()
	if left := voters - v.retiring() - 1; left+spares < v.Target.Voters {
		return conflicts("", fmt.Sprintf("no host is ready to replace it: without %s %d of %d voters would be left",
			h.Name, left, v.Target.Voters), "bring another host to health OK, or install quorumd on another host; "+
			"quorumctl explain there shows what it waits for")
	}
	return nil
}

// voterOf returns the voter of a host and whether there is one.
func (v View) voterOf(h Host) (Member, bool) {
	for m := range v.Cluster.voters() {
		if m.PeerURL == h.PeerURL {
			return m, true
		}
	}
	return Member{}, false
}

// noHostReady is what a plan's join waits for while no host may join.
const noHostReady = "no host is ready; quorumctl explain on the hosts shows why"

// RetirePlan returns the steps that the retirement of the host with that ID takes if nothing fails.
func RetirePlan(v View, id string) (steps []PlanStep) {
	i := slices.IndexFunc(v.Hosts, func(h Host) bool { return h.ID == id })
	if i < 0 {
		return nil
	}
	h := v.Hosts[i]
	voters, _ := v.Cluster.Counts()
	m, voter := v.voterOf(h)
	v.Retired = append(slices.Clone(v.Retired), Retired{Host: h.ID, PeerURL: h.PeerURL, MemberID: m.ID})
	v.Target.Resized = true
	if voter && voters-v.retiring() < v.Target.Voters {
		voters++
		join := PlanStep{Voters: voters, Tolerance: Tolerance(voters, voters)}
		switch joins := candidates(v, RoleVoter, selfReady(v)); {
		case len(joins) > 0:
			join.Text = joinText(joins[0])
		default:
			join.Text = "another host joins as a learner, catches up and becomes a voter"
			join.WaitsFor = noHostReady
		}
		steps = append(steps, join)
	}
	switch {
	case voter:
		text, _ := nextLeave(v)
		voters--
		steps = append(steps, PlanStep{Text: text, Voters: voters, Tolerance: Tolerance(voters, voters), Final: true})
	case h.Role == RoleStandby || h.Role == RoleJoining:
		steps = append(steps, PlanStep{
			Text:      h.Name + " leaves: its learner is removed, etcd is stopped and its data is moved aside",
			Voters:    voters,
			Tolerance: Tolerance(voters, voters), Final: true,
		})
	}
	return append(steps, PlanStep{
		Text:      h.Name + " stays out of the cluster until the retirement is undone, and can be switched off",
		Voters:    voters,
		Tolerance: Tolerance(voters, voters),
	})
}
