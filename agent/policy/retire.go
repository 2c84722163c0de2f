// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"fmt"
	"slices"

	"github.com/quorumd/quorumd/agent/record"
)

// An operator retires a host to keep it out of the cluster for good, whether or not it is healthy. If it holds a voter,
// another host joins first, unless there are enough voters without it. Afterwards the voter leaves, as in a cluster
// that becomes smaller. A retired host's learner leaves at once. The record in etcd has no lease, so the host stays out
// across reboots and reinstallations until an operator undoes the retirement. If the retired host's voter is dead, it
// is replaced or removed like any other dead voter. If the operator has named the host that joins, no other host joins
// instead, even while the named one cannot.

// Retired is a host that an operator has retired.
type Retired struct {
	Host       string // the host's ID
	PeerURL    string // empty if the retirement's record cannot be read: the host stays out, and its member stays
	MemberID   uint64 // the ID of the member that the host had when it was retired; 0 if it had none
	Successor  record.Successor
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

// isRetired reports whether a host is retired, or might be because the record of its retirement cannot be read.
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

// retiring returns the number of voters on retired hosts. They do not count towards the size of the cluster, so other
// hosts may join in their place. While the size of the cluster cannot be read, no host joins, and retiring returns 0.
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

// keptPlace is the place of a retired host's voter that is kept for the host named to replace it.
type keptPlace struct {
	retired Member // the voter that leaves
	by      string
	record.Successor
}

// keptPlaces returns the places that are kept for named hosts: those of retired hosts that still vote, while the named
// ones do not vote yet. No place is kept for a host that has been retired itself.
func (v View) keptPlaces() []keptPlace {
	var kept []keptPlace
	for m := range v.Cluster.voters() {
		for _, r := range v.Retired {
			if r.Successor.Host != "" && v.Owns(r, m) && !v.votes(r.Successor) && !v.isRetired(r.Successor.Host) {
				kept = append(kept, keptPlace{m, r.By, r.Successor})
			}
		}
	}
	return kept
}

// votes reports whether a named host has a voter. Its peer URL may have changed since it was named, so the host that is
// present at the member's address decides; while none is, the recorded URL does.
func (v View) votes(s record.Successor) bool {
	for m := range v.Cluster.voters() {
		h, present := v.hostOf(m)
		if present && h.ID == s.Host || !present && m.PeerURL == s.PeerURL {
			return true
		}
	}
	return false
}

// keptVoter returns the place of voter m if it is kept for a host other than the one with that ID.
func (v View) keptVoter(m Member, id string) (keptPlace, bool) {
	for _, k := range v.keptPlaces() {
		if k.retired.ID == m.ID && k.Host != id {
			return k, true
		}
	}
	return keptPlace{}, false
}

// keptFrom returns the place that is kept for another host, if the host with that ID may not become a voter because
// every free place is kept.
func (v View) keptFrom(id string) (keptPlace, bool) {
	kept := v.keptPlaces()
	voters, _ := v.Cluster.Counts()
	free := v.Target.Voters - (voters - v.retiring())
	named := slices.ContainsFunc(kept, func(k keptPlace) bool { return k.Host == id })
	if len(kept) == 0 || free > len(kept) || named {
		return keptPlace{}, false
	}
	return kept[0], true
}

// keptText returns for which host a place is kept, what keeps that host from joining, and how an operator lets any host
// join: until then no other host joins, even if the named one is lost.
func (v View) keptText(k keptPlace) string {
	state := ""
	switch i := slices.IndexFunc(v.Hosts, func(h Host) bool { return h.ID == k.Host }); {
	case i < 0:
		state = "; no quorumd runs on " + k.Name
	case v.Hosts[i].Waiting != "":
		state = "; " + k.Name + " waits for " + string(v.Hosts[i].Waiting)
	}
	return fmt.Sprintf("only %s may join: %s named it to replace %s%s → to let any host join: quorumctl retire %s "+
		"--reason '<why>'", k.Name, k.by, k.retired.label(), state, k.retired.label())
}

// joiners returns the candidates for a free place of a voter, best first.
func joiners(v View) []Host {
	list := candidates(v, RoleVoter, selfReady(v))
	if _, kept := v.keptFrom(""); !kept {
		return list
	}
	named := v.keptPlaces()
	return slices.DeleteFunc(list, func(h Host) bool {
		return !slices.ContainsFunc(named, func(k keptPlace) bool { return k.Host == h.ID })
	})
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
			next := "another host"
			if r.Successor.Name != "" {
				next = r.Successor.Name
			}
			return text + "; its voter leaves once " + next + " has joined", true
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

// AgainstRetire returns why an operator may not retire the host with that ID now, or nil. successor is the ID of the
// host that an operator has named to replace it; empty if any host may. If the host is retired already, only the
// successor changes. An operator may always clear the successor: that lets more hosts join, not fewer.
func AgainstRetire(v View, id, successor string) *Refusal {
	if v.isRetired(id) && successor == "" {
		return nil
	}
	v.Retired = slices.DeleteFunc(slices.Clone(v.Retired), func(r Retired) bool { return r.Host == id })
	if r := AgainstRemovals(v); r != nil { // checks the mode, the connection and a pause
		return r
	}
	i := slices.IndexFunc(v.Hosts, func(h Host) bool { return h.ID == id })
	switch {
	case v.Recovery != nil:
		return conflicts(Recovering, "a recovery plan is in progress", "quorumctl recover status")
	case i < 0:
		return &Refusal{
			NoSuch, "", "no host with that name or ID runs quorumd",
			"quorumctl status lists the hosts; if the host is gone, remove its member: quorumctl member remove NAME " +
				"--reason '<why>'",
		}
	}
	h := v.Hosts[i]
	m, voter := v.voterOf(h)
	switch {
	case h.InOperation || v.Op.names(h, m):
		return conflicts(OperationInFlight, h.Name+" is in an operation", "wait for it: quorumctl operation show")
	case successor != "" && !voter:
		return conflicts("", h.Name+" has no voter, so no host replaces it",
			"to keep it out: quorumctl retire "+h.Name+" --reason '<why>'")
	case !voter:
		return v.againstRetireNamed(h)
	case !h.Manage:
		return conflicts(ModeObserve, "quorumd on "+h.Name+" only observes",
			"set mode: manage there and reload quorumd")
	}
	if r := v.againstSuccessor(h, successor); successor != "" && r != nil {
		return r
	}
	spares := len(candidates(v, RoleVoter, selfReady(v)))
	voters, _ := v.Cluster.Counts()
	if left := voters - v.retiring() - 1; left+spares < v.Target.Voters {
		return conflicts("", fmt.Sprintf("no host is ready to replace it: without %s, %d of %d voters would be left",
			h.Name, left, v.Target.Voters), "bring another host to health OK, or install quorumd on another host; "+
			"quorumctl explain there shows what it waits for")
	}
	return nil
}

// againstRetireNamed returns why a host without a voter may not be retired, or nil.
func (v View) againstRetireNamed(h Host) *Refusal {
	for _, k := range v.keptPlaces() {
		if k.Host == h.ID {
			return conflicts("", h.Name+" is named to replace "+k.retired.label(),
				"name another host, or none: quorumctl retire "+k.retired.label()+" --reason '<why>'")
		}
	}
	return nil
}

// againstSuccessor returns why the host with the ID id may not replace a host's voter, or nil.
func (v View) againstSuccessor(old Host, id string) *Refusal {
	i := slices.IndexFunc(v.Hosts, func(h Host) bool { return h.ID == id })
	if i < 0 {
		return &Refusal{
			NoSuch, "", "no host with the name or ID " + id + " runs quorumd", "quorumctl status lists the hosts",
		}
	}
	h := v.Hosts[i]
	_, votes := v.voterOf(h)
	voters, _ := v.Cluster.Counts()
	switch {
	case h.ID == old.ID || votes:
		return conflicts("", h.Name+" has a voter already", "name a spare or the standby: quorumctl status")
	case v.isRetired(h.ID):
		return conflicts(HostRetired, h.Name+" is retired", "quorumctl retire "+h.Name+" --undo")
	case !h.Manage:
		return conflicts(ModeObserve, "quorumd on "+h.Name+" only observes",
			"set mode: manage there and reload quorumd")
	case voters-v.retiring()-1 >= v.Target.Voters:
		return conflicts(TargetMet, fmt.Sprintf("no host has to replace %s: without it, %d of %d voters are left",
			old.Name, voters-v.retiring()-1, v.Target.Voters), "quorumctl retire "+old.Name+" --reason '<why>'")
	}
	for _, k := range v.keptPlaces() {
		if k.Host == h.ID {
			return conflicts("", h.Name+" is named to replace "+k.retired.label(), "name another host")
		}
	}
	if m, blocked := v.otherLearner(h.PeerURL, false); blocked {
		if m.Standby {
			return conflicts(LearnerPresent, "the standby "+m.label()+" replaces it first", fmt.Sprintf("name it: "+
				"quorumctl member replace %s %s --reason '<why>'; or retire it first: quorumctl retire %s "+
				"--reason '<why>'", old.Name, m.label(), m.label()))
		}
		return conflicts(LearnerPresent, m.label()+" is a learner that is joining",
			"wait for it: quorumctl operation show")
	}
	if v.Op.joins() && v.Op.Host != h.ID {
		return conflicts(OperationInFlight, v.Op.HostName+" is joining", "wait for it: quorumctl operation show")
	}
	ready := candidates(v, RoleVoter, selfReady(v))
	if !slices.ContainsFunc(ready, func(c Host) bool { return c.ID == h.ID }) {
		text := h.Name + " cannot join now"
		if h.Waiting != "" {
			text += ": " + string(h.Waiting)
		}
		return conflicts(h.Waiting, text, "quorumctl explain "+h.Name)
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

// noHostReady is what a step of a plan waits for while no host is ready to join.
const noHostReady = "no host is ready; quorumctl explain on the hosts shows why"

// RetirePlan returns the steps that the retirement of the host with that ID takes if nothing fails.
func RetirePlan(v View, id string, successor record.Successor) (steps []PlanStep) {
	i := slices.IndexFunc(v.Hosts, func(h Host) bool { return h.ID == id })
	if i < 0 {
		return nil
	}
	h := v.Hosts[i]
	voters, _ := v.Cluster.Counts()
	m, voter := v.voterOf(h)
	v.Retired = slices.DeleteFunc(slices.Clone(v.Retired), func(r Retired) bool { return r.Host == h.ID })
	v.Retired = append(v.Retired, Retired{
		Host: h.ID, PeerURL: h.PeerURL, MemberID: m.ID, Successor: successor,
	})
	v.Target.Resized = true
	if voter && voters-v.retiring() < v.Target.Voters {
		voters++
		join := PlanStep{Voters: voters, Tolerance: Tolerance(voters, voters)}
		switch joins := joiners(v); {
		case len(joins) > 0:
			join = join.joins(joins[0])
		case successor.Host != "":
			join = join.joins(Host{Name: successor.Name})
			join.WaitsFor = "it is not ready; quorumctl explain " + successor.Name + " shows why"
		default:
			join = join.anyJoins(noHostReady)
		}
		steps = append(steps, join)
	}
	switch {
	case voter:
		voters--
		leaves, _ := PlanStep{Voters: voters, Tolerance: Tolerance(voters, voters)}.leave(v)
		leaves.WaitsFor, _ = lastOfUpgrade(v, m, Version{})
		steps = append(steps, leaves)
	case h.Role == RoleStandby || h.Role == RoleJoining || h.Role == RoleLearner:
		steps = append(steps, PlanStep{
			Text:      h.Name + " leaves: its learner is removed, etcd is stopped and its data is moved aside",
			Change:    PlanLeaves,
			Host:      h.Name,
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
