// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package model

import "github.com/quorumd/quorumd/agent/policy"

// transferState is an operator's request to a host's agent to transfer leadership to a voter. The agent keeps it in
// memory only. There is at most one request at a time, because several would only queue for the lock.
type transferState struct {
	trRequested uint8 // a transfer is requested
	trHost      uint8 // the host that received the request
	trTarget    uint8 // the host whose voter is to lead
	trExpired   uint8 // the request has expired
	trCount     uint8 // number of requests so far
}

func (t *transferState) pack(p *packer) {
	p.put(t.trRequested, 1)
	p.put(t.trHost, 3)
	p.put(t.trTarget, 3)
	p.put(t.trExpired, 1)
	p.put(t.trCount, 2)
}

func (t *transferState) unpack(p *packer) {
	t.trRequested, t.trHost, t.trTarget, t.trExpired, t.trCount = p.get(1), p.get(3), p.get(3), p.get(1), p.get(2)
}

func (t *transferState) permute(place *[maxHosts]uint8) {
	if t.trRequested != 0 {
		t.trHost, t.trTarget = place[t.trHost], place[t.trTarget]
	}
}

func (w *world) tidyTransfer() {
	if w.trRequested == 0 {
		w.transferState = transferState{trCount: w.trCount}
	}
}

// transferMark returns a number that distinguishes the hosts of the request from all others, to sort the hosts.
func (w *world) transferMark(i int) uint64 {
	const spread = 0x9e3779b97f4a7c15
	if w.trRequested == 0 {
		return 0
	}
	return (uint64(bit(int(w.trHost) == i)) | 2*uint64(bit(int(w.trTarget) == i))) * spread
}

// requestTransfer applies an operator's request that a host transfer leadership to another host's voter or to its own.
func (m *machine) requestTransfer(w *world, by int, to uint8) bool {
	h := &w.hosts[by]
	if int(w.trCount) >= m.Transfers || w.trRequested != 0 || h.agent != up || h.down != 0 || !w.reaches(by) ||
		int(to) >= w.n || w.hosts[to].list != voter {
		return false
	}
	w.transferState = transferState{trRequested: 1, trHost: uint8(by), trTarget: to, trCount: w.trCount + 1}
	return true
}

// forgetTransfer ends the request if host i received it, because the agent keeps the request only in memory.
func (w *world) forgetTransfer(i int) {
	if int(w.trHost) == i {
		w.trRequested = 0
	}
}

// noteTransfer ends the request if the agent has decided to end it.
func (w *world) noteTransfer(ends bool) {
	if ends {
		w.trRequested = 0
	}
}

// transferSeen returns what an agent observes of the request. Only the agent that received the request observes it.
func (w *world) transferSeen(h int) transferState {
	if w.trRequested == 0 || int(w.trHost) != h {
		return transferState{}
	}
	return transferState{trRequested: 1, trTarget: w.trTarget, trExpired: w.trExpired}
}

func (s *observation) transferView() *policy.TransferRequest {
	if s.trRequested == 0 {
		return nil
	}
	return &policy.TransferRequest{
		MemberID: memberID(int(s.trTarget)), By: "root", Reason: "testing", Expired: s.trExpired != 0,
	}
}

// transferMayEnd reports whether a host could observe that the voter of its request leads. It returns false for a slow
// host: its leader viewpoints always mean that it leads itself (leadershipOf).
func (w *world) transferMayEnd(h int) bool {
	return w.transferSeen(h).trRequested != 0 && w.op == 0 && w.hosts[h].health != slow && w.reaches(h) &&
		w.hosts[w.trTarget].list == voter && w.serves(int(w.trTarget))
}

// judgeTransfer checks a leadership transfer outside this host's operation against the world at the time of the view.
func (w *world) judgeTransfer(h, to int) breach {
	t, asked := &w.hosts[to], w.transferSeen(h)
	switch {
	case w.op != 0 || w.anotherInOperation(h):
		return transferredDuringOperation
	case asked.trRequested == 0 || int(asked.trTarget) != to || asked.trExpired != 0:
		return transferredUnasked
	case t.list != voter || !w.serves(to):
		return transferredToDead
	case !w.present(to) || t.health == slow || t.health == unknown:
		return transferredToWorse
	case t.work != noWork && !w.requestOver(to), t.inOperation(), w.isRetired(to),
		w.rmRequested != 0 && int(w.rmHost) == h && int(w.rmTarget) == to:
		return transferredToTaken
	}
	return fine
}

// judgeTransferNote checks whether the request may end: in this view, the requested voter leads or is no longer a
// voter, or the request has expired.
func (w *world) judgeTransferNote(h int, s *observation, ends bool) breach {
	asked := w.transferSeen(h)
	if !ends || asked.trExpired != 0 {
		return fine
	}
	if asked.trRequested == 0 || !w.reaches(h) {
		return transferDropped
	}
	if w.hosts[asked.trTarget].list != voter {
		return fine
	}
	for _, m := range s.clusterView().Members {
		if m.Leader && m.ID == memberID(int(asked.trTarget)) {
			return fine
		}
	}
	return transferDropped
}

// transferPromises returns the promises about leadership transfers that operators request.
func transferPromises() map[breach]promise {
	return map[breach]promise{
		transferredUnasked: {
			"P4", "leadership is transferred without a request for that voter, or after the request has expired",
		},
		transferredDuringOperation: {"P1", "leadership is transferred on request during an operation"},
		transferredToDead: {
			"P2", "leadership is transferred on request to a host that is not a voter or does not serve",
		},
		transferredToWorse: {
			"P6", "leadership is transferred on request to a voter that is not reported healthy",
		},
		transferredToTaken: {
			"P1", "leadership is transferred on request to a voter that is about to be taken down or removed",
		},
		transferDropped: {
			"P8",
			"a request to transfer leadership ends although its voter does not lead and the request has not expired",
		},
		transferNeverEnds: {"liveness", "all faults are healed, but an expired request to transfer leadership remains"},
	}
}

// smallTransfers returns the scopes of requested leadership transfers that every test run explores.
func smallTransfers() []Scenario {
	three := policy.Target{Voters: 3}
	return []Scenario{
		{Name: "leadership transferred", Hosts: 3, Voters: 3, Target: three, Transfers: 1, Liveness: true},
		{
			Name: "leadership transferred, a fault", Hosts: 3, Voters: 3, Target: three, Transfers: 1,
			Faults: AllFaults,
			Budget: 1, Liveness: true,
		},
		{
			Name: "leadership transferred, one host taken down", Hosts: 3, Voters: 3, Target: three, Transfers: 1,
			Requests: 1,
			Liveness: true,
		},
		{
			Name: "leadership transferred, a third voter joins", Hosts: 3, Voters: 2, Target: three, Transfers: 1,
			Liveness: true,
		},
	}
}

// Transfers returns the scopes of requested leadership transfers, together with other operations.
func Transfers() []Scenario {
	three := policy.Target{Voters: 3}
	return append(smallTransfers(),
		Scenario{
			Name: "leadership transferred, 2 faults", Hosts: 3, Voters: 3, Target: three, Transfers: 1,
			Faults: AllFaults,
			Budget: 2, Liveness: true, Long: true,
		},
		Scenario{
			Name: "leadership transferred, one host taken down, a fault", Hosts: 3, Voters: 3, Target: three,
			Transfers: 1, Requests: 1, Faults: AllFaults, Budget: 1, Liveness: true, Long: true,
		},
		Scenario{
			Name: "leadership transferred, a voter retired", Hosts: 4, Voters: 3, Target: three, Transfers: 1,
			Retirements: 1, Liveness: true, Long: true,
		},
		Scenario{
			Name: "leadership transferred, one voter removed", Hosts: 3, Voters: 3, Target: three, Transfers: 1,
			Removals: 1, Liveness: true, Long: true,
		},
	)
}
