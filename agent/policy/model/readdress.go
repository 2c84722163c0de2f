// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package model

import (
	"github.com/quorumd/quorumd/agent/policy"
	"github.com/quorumd/quorumd/agent/record"
)

// readdressState holds the peer URLs of the members. In scopes with Readdress, operators request that the peer URL of a
// host's member change from its old to its new value. An operator who ends such a request before the member list is
// updated restores the old value in the configuration. readdress_test.go also explores undone changes, https, and
// connections in one direction, in separate worlds without other operations.
type readdressState struct {
	urls [maxHosts]memberURL
	// opReaddress: the host operation is a readdress.
	opReaddress uint8
	opNew       uint8 // the new URL was registered when the operation began
	opVerify    uint8 // the phase of the operation is verify; opPhase is phaseBack then
	// lateRestores: the update that was not answered in time restores the old URL.
	lateRestores uint8
}

// memberURL is a set of facts about the peer URL of a host's member.
type memberURL uint8

const (
	// newRegistered: the member list has the new URL. For a host without a member: it would join with the new URL.
	newRegistered memberURL = 1 << iota
	newInEnv                // the environment of the next start has the new URL
	newListens              // the running etcd, or the last one that ran, listens at the new URL
	// unverified: since the member list was updated, the running members have not connected to the registered URL.
	unverified
)

func (u memberURL) has(x memberURL) bool { return u&x != 0 }

// reachable reports whether etcd listens at the registered URL.
func (u memberURL) reachable() bool { return u.has(newRegistered) == u.has(newListens) }

// packURLs packs the URLs, and which requests are for a readdress: packedWork has no value left for that.
func (w *world) packURLs(p *packer) {
	for i := range maxHosts {
		p.put(uint8(w.urls[i]), 4)
		p.put(bit(w.hosts[i].work == readdressing), 1)
	}
	p.put(w.opReaddress, 1)
	p.put(w.opNew, 1)
	p.put(w.opVerify, 1)
	p.put(w.lateRestores, 1)
}

func (w *world) unpackURLs(p *packer) {
	for i := range maxHosts {
		w.urls[i] = memberURL(p.get(4))
		if p.get(1) != 0 {
			w.hosts[i].work = readdressing
		}
	}
	w.opReaddress, w.opNew, w.opVerify, w.lateRestores = p.get(1), p.get(1), p.get(1), p.get(1)
}

// urlMark returns a number that distinguishes hosts with different URLs, to sort the hosts.
func (w *world) urlMark(i int) uint64 {
	return (uint64(w.urls[i])<<1 | uint64(bit(w.hosts[i].work == readdressing))) * 0x9e3779b97f4a7c15
}

// mayReaddress reports whether operators may request a readdress of host i. Only URLs of voters change: no quorum
// depends on a learner's.
func (m *machine) mayReaddress(w *world, i int) bool {
	h := &w.hosts[i]
	return m.Readdress && h.list == voter && !w.urls[i].has(newRegistered)
}

// configuresNew reports whether a host's configuration has the new URL.
func (w *world) configuresNew(i int) bool {
	h := &w.hosts[i]
	return w.urls[i].has(newRegistered) || h.work == readdressing && h.ended == 0
}

// updateURL registers the new URL of a host's member, or the old one again. The members are still connected to the URL
// at which etcd listens.
func (w *world) updateURL(i int, isNew bool) {
	if w.hosts[i].list == unlisted || w.urls[i].has(newRegistered) == isNew {
		return
	}
	w.urls[i] ^= newRegistered
	if w.urls[i] &^= unverified; !w.urls[i].reachable() {
		w.urls[i] |= unverified
	}
}

// joinsAtURL lets a new member's environment and etcd use the URL that is registered for the member.
func (w *world) joinsAtURL(i int) {
	if w.urls[i] &= newRegistered; w.urls[i] != 0 {
		w.urls[i] |= newInEnv | newListens
	}
}

// startsAtURL lets a host's etcd listen at the URL in its environment.
func (w *world) startsAtURL(i int) {
	if w.urls[i] &^= newListens; w.urls[i].has(newInEnv) {
		w.urls[i] |= newListens
	}
}

// writeURL writes the configured URL to the environment.
func (w *world) writeURL(i int) {
	if w.urls[i] &^= newInEnv; w.configuresNew(i) {
		w.urls[i] |= newInEnv
	}
}

// connects connects all running members to the registered URL of a host's member, and reports whether that is possible.
// A member that is down connects when it starts.
func (w *world) connects(i int) bool {
	if !w.urls[i].has(unverified) || !w.urls[i].reachable() || !w.serves(i) {
		return false
	}
	w.urls[i] &^= unverified
	return true
}

// updateLate reports whether an update of the member list may still be applied. Etcd applies it within the lock's TTL
// or never, and no host is taken down during that time.
func (w *world) updateLate() bool {
	for i := range w.n {
		if h := &w.hosts[i]; h.lateUpdate != 0 || h.phase == sent && updatesURL(h.step) {
			return true
		}
	}
	return false
}

func updatesURL(step uint8) bool { return step == updateMember || step == restoreMember }

// tidyURLs clears what has no meaning about the URLs.
func (w *world) tidyURLs() {
	if w.op == 0 || w.opCycle == 0 {
		w.opReaddress, w.opNew, w.opVerify = 0, 0, 0
	}
	late := uint8(0)
	for i := range w.n {
		h := &w.hosts[i]
		if h.list == unlisted {
			w.urls[i] &= newRegistered
			h.lateUpdate = 0
		}
		late |= h.lateUpdate
	}
	w.lateRestores &= late
}

// beginsNow returns the step that a host takes. A step that begins a host operation does so for the request that is on
// the host's disk when the step is taken; none if it was cancelled. In scopes without readdresses, an operation also
// begins after its request was cancelled, and no step depends on the work.
func (m *machine) beginsNow(w *world, h int) uint8 {
	a := &w.hosts[h]
	switch {
	case !m.Readdress || a.step != beginCycle && a.step != beginReaddress:
		return a.step
	case a.work == noWork:
		return none
	case a.work == readdressing:
		return beginReaddress
	}
	return beginCycle
}

// putReaddress records with a host operation whether it is a readdress, and the member's URL at its beginning.
func (w *world) putReaddress(h int, is bool) {
	w.opReaddress, w.opNew = bit(is), bit(w.urls[h].has(newRegistered))
}

// urlsSeen is what a host observes of the URLs.
type urlsSeen struct {
	registered [maxHosts]bool // the member list has the new URL
	configured bool           // this host's configuration has the new URL
	envReady   bool           // this host's environment has the configured URL
	late       bool           // an update that this host has sent may still be applied
	// answered: for a readdress of this host, what the hosts have published about their connections.
	answered [maxHosts]bool
	// reached: for a readdress of this host, which members another voter's host reports that it reaches.
	reached                      [maxHosts]bool
	opReaddress, opNew, opVerify uint8
}

// urlsSeen returns what a host observes of the URLs. Hosts answer at once. That an answer may be old is explored by
// readdress_test.go.
func (w *world) urlsSeen(h int) (s urlsSeen) {
	s.configured, s.late = w.configuresNew(h), w.hosts[h].lateUpdate != 0
	s.envReady = w.urls[h].has(newInEnv) == s.configured
	if w.op != 0 {
		s.opReaddress, s.opNew, s.opVerify = w.opReaddress, w.opNew, w.opVerify
	}
	for i := range w.n {
		s.registered[i] = w.urls[i].has(newRegistered)
		if s.opReaddress != 0 && w.cycles(h) {
			s.answered[i] = i == h && w.opVerify != 0 || w.connected(i, w.opVerify != 0)
			s.reached[i] = w.reachedFrom(i, h)
		}
	}
	return s
}

// connected reports whether a host publishes that its etcd is connected: during the verification to the member of the
// operation, and before that to all other members except that one.
func (w *world) connected(i int, verifies bool) bool {
	switch {
	case verifies:
		return !w.urls[w.opHost].has(unverified)
	case i == int(w.opHost) && w.urls[i].has(unverified): // its etcd may count a voter that has restarted as inactive
		return false
	}
	for j := range w.n {
		if j != i && j != int(w.opHost) && w.urls[j].has(unverified) {
			return false
		}
	}
	return true
}

// reachedFrom reports whether the host of a voter, other than that member's and host except, reports that it reaches
// host i's member.
func (w *world) reachedFrom(i, except int) bool {
	for j := range w.n {
		if h := &w.hosts[j]; j != i && j != except && h.list == voter && w.present(j) && h.blind == 0 && w.answers(i) {
			return true
		}
	}
	return false
}

// reachReports returns what host i reports about its connections to other members during a readdress of this host.
func (s *observation) reachReports(i int) (list []record.Reachability) {
	for m := range s.urls.reached {
		if s.urls.reached[m] && m != i && i != int(s.self) && s.hosts[i].list == voter {
			who := record.MemberID(memberID(m))
			list = append(list, record.Reachability{MemberID: who, Peer: record.PortAnswers})
		}
	}
	return list
}

// peerURL returns the registered peer URL of a host's member.
func (s *observation) peerURL(i int) string { return peerURL(i, s.urls.registered[i]) }

func peerURL(i int, isNew bool) string {
	if isNew {
		return hostName(i) + "2"
	}
	return hostName(i)
}

// readdressView sets what a view shows about this host's configured URL, and about its environment during a readdress.
func (s *observation) readdressView(v *policy.View) {
	v.UpdatePending = s.urls.late
	if s.hosts[s.self].list != unlisted && s.urls.configured && !s.urls.registered[s.self] {
		v.Self.NewPeerURL = peerURL(int(s.self), true)
	}
	if s.work == readdressing || s.ownCycle() && s.urls.opReaddress != 0 {
		v.Unit.EnvReady, v.Unit.EnvBegun = s.urls.envReady, s.urls.envReady
	}
}

// readdressOp sets what the record of a host operation shows about a readdress.
func (s *observation) readdressOp(op *policy.Op) {
	if s.urls.opReaddress == 0 {
		return
	}
	op.Work, op.PeerURL = policy.WorkReaddress, peerURL(int(s.opHost), s.urls.opNew != 0)
	if s.urls.opVerify != 0 {
		op.Phase = policy.PhaseVerify
	}
}

// judgeUpdate checks that a host updates its member's URL only during its readdress.
func (w *world) judgeUpdate(h int, step uint8) breach {
	switch {
	case !w.cycles(h):
		return changeWithoutOp
	case w.opReaddress == 0 || step == updateMember && w.hosts[h].work != readdressing:
		return updatedUnasked
	}
	return fine
}

// judgeURLs checks that at most one registered URL is unverified. Two members with wrong URLs could not connect to each
// other.
func (w *world) judgeURLs() breach {
	n := 0
	for i := range w.n {
		n += int(bit(w.urls[i].has(unverified)))
	}
	if n > 1 {
		return twoUnverified
	}
	return fine
}

// judgeVerified checks that a readdress ends only after the running members have connected to the new URL.
func (w *world) judgeVerified(h int) breach {
	if w.opReaddress != 0 && w.hosts[h].list != unlisted && (w.urls[h].has(unverified) || !w.urls[h].reachable()) {
		return endedUnverified
	}
	return fine
}

// readdressAgain readdresses the hosts whose URLs are unverified after the operation was released, as operators must,
// and reports whether there is one.
func (m *machine) readdressAgain(w *world) (found bool) {
	if m.faults&(OperatorRelease|Forgery) == 0 {
		return false
	}
	for i := range w.n {
		if h := &w.hosts[i]; w.urls[i].has(unverified) && !w.inOperation(i) && h.work == noWork {
			w.urls[i], found = newRegistered|newInEnv|newListens, true
		}
	}
	return found
}

// neverVerified reports whether a URL is still unverified when nothing changes any more.
func (w *world) neverVerified() bool {
	for i := range w.n {
		if w.urls[i].has(unverified) {
			return true
		}
	}
	return false
}

// readdressPromises returns the promises about changed peer URLs.
func readdressPromises() map[breach]promise {
	return map[breach]promise{
		twoUnverified:   {"P9", "two members have unverified peer URLs"},
		endedUnverified: {"P9", "a readdress ends before the new peer URL is verified"},
		updatedUnasked:  {"P9", "a peer URL in the member list changes without a request"},
		urlStays:        {"liveness", "all faults are healed, but a new peer URL is never verified"},
	}
}

func (u memberURL) text() (text string) {
	for _, mark := range []struct {
		on   memberURL
		text string
	}{
		{newRegistered, "new-URL-registered"},
		{newInEnv, "in-environment"},
		{newListens, "listens"},
		{unverified, "unverified"},
	} {
		if u.has(mark.on) {
			text += "," + mark.text
		}
	}
	return text
}

// smallReaddresses returns the scopes of readdresses that every test run explores.
func smallReaddresses() []Scenario {
	three := policy.Target{Voters: 3}
	return []Scenario{
		{
			Name: "one host readdressed, a fault", Hosts: 3, Voters: 3, Target: three, Requests: 1, Work: readdressing,
			Readdress: true, Faults: AllFaults, Budget: 1, Liveness: true,
		},
		{
			Name: "two hosts readdressed", Hosts: 3, Voters: 3, Target: three, Requests: 2, Work: readdressing,
			Readdress: true, Liveness: true,
		},
		{
			Name: "a host readdressed while a standby joins", Hosts: 4, Voters: 3,
			Target: policy.Target{Voters: 3, Standbys: 1}, Requests: 1, Work: readdressing, Readdress: true,
			Liveness: true,
		},
	}
}

// Readdresses returns the scopes of readdresses, together with other operations.
func Readdresses() []Scenario {
	three, five := policy.Target{Voters: 3}, policy.Target{Voters: 5}
	return append(smallReaddresses(),
		Scenario{
			Name: "two hosts readdressed, a fault", Hosts: 3, Voters: 3, Target: three, Requests: 2,
			Work: readdressing, Readdress: true, Faults: AllFaults, Budget: 1, Liveness: true, Long: true,
		},
		Scenario{
			Name: "a host readdressed while a standby joins, a fault", Hosts: 4, Voters: 3,
			Target: policy.Target{Voters: 3, Standbys: 1}, Requests: 1, Work: readdressing, Readdress: true,
			Faults: AllFaults, Budget: 1, Liveness: true, Long: true,
		},
		Scenario{
			Name: "a host readdressed, another one taken down", Hosts: 3, Voters: 3, Target: three, Requests: 2,
			Work: maintenance, Readdress: true, Faults: AgentCrash | EtcdCrash | LateCall, Budget: 1, Liveness: true,
			Long: true,
		},
		Scenario{
			Name: "a host readdressed, a voter removed", Hosts: 3, Voters: 3, Target: three, Requests: 1,
			Work: readdressing, Readdress: true, Removals: 1, Liveness: true,
		},
		Scenario{
			Name: "a host readdressed, five voters become three", Hosts: 5, Voters: 5, Target: five, Requests: 1,
			Work: readdressing, Readdress: true, ResizeTo: 3, Liveness: true,
		},
		Scenario{
			Name: "a host readdressed, a voter retired", Hosts: 4, Voters: 3, Target: three, Requests: 1,
			Work: readdressing, Readdress: true, Retirements: 1, Liveness: true,
		},
		Scenario{
			Name: "a host readdressed, a dead voter replaced", Hosts: 4, Voters: 3, Target: three, Requests: 1,
			Work: readdressing, Readdress: true, Repair: true, Faults: HostCrash, Budget: 1, Liveness: true, Long: true,
		},
		Scenario{
			Name: "two of five hosts readdressed, one crashes", Hosts: 5, Voters: 5, Target: five, Requests: 2,
			Work: readdressing, Readdress: true, Faults: HostCrash | AgentCrash, Budget: 1, Liveness: true, Long: true,
		},
		Scenario{
			Name: "a host readdressed while a fifth voter joins", Hosts: 5, Voters: 4, Target: five, Requests: 1,
			Work: readdressing, Readdress: true, Faults: AgentCrash, Budget: 1, Liveness: true, Long: true,
		},
	)
}
