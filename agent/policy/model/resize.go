// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package model

import (
	"github.com/quorumd/quorumd/agent/policy"
	"github.com/quorumd/quorumd/agent/record"
)

// resizeState is the size and the retirement that operators have recorded, and the operation in which a member leaves
// because of either. That operation also sets opReplace, with its own host as the replaced host, because the reports of
// the other voters and a late removal are modelled as in a replacement.
type resizeState struct {
	resized uint8 // 1: the scenario's ResizeTo is recorded; 2: its Target is, by a resize back or a retirement
	// opLeave: the operation is a leave. Its phase is begun, ready (the removal may have been sent) or rollback.
	opLeave uint8
	retired uint8 // the host that an operator has retired, plus 1
	retires uint8 // how many times operators have retired a host, undone that, or changed the successor
	// successor is the host that an operator has named to replace the retired one, plus 1
	successor uint8
}

// packSize packs the size of the cluster, the retirement, the requested transfer, the permanent learner, the upgrade
// and the peer URLs.
func (w *world) packSize() uint64 {
	var p packer
	p.put(w.resized, 2)
	p.put(w.opLeave, 1)
	p.put(w.retired, 3)
	p.put(w.retires, 2)
	p.put(w.successor, 3)
	w.transferState.pack(&p)
	w.learnerState.pack(&p)
	w.upgradeState.pack(&p)
	w.packURLs(&p)
	return p.v
}

func (w *world) unpackSize(v uint64) {
	p := packer{v: v}
	w.resized, w.opLeave, w.retired, w.retires = p.get(2), p.get(1), p.get(3), p.get(2)
	w.successor = p.get(3)
	w.transferState.unpack(&p)
	w.learnerState.unpack(&p)
	w.upgradeState.unpack(&p)
	w.unpackURLs(&p)
}

// target returns the size of the cluster, as it is recorded in etcd or configured.
func (m *machine) target(resized uint8) policy.Target {
	t := m.Target
	t.Configured = t.Voters
	if resized != 0 {
		t.Resized, t.ResizedFor = true, ages
		t.WithoutSnapshot = true // the model has no snapshots
	}
	if resized == 1 {
		t.Voters = m.ResizeTo
	}
	return t
}

// resize applies an operator's request to resize the cluster, and later to resize it back.
func (m *machine) resize(w *world) bool {
	if m.ResizeTo == 0 || w.resized == 2 || !w.quorum() {
		return false
	}
	w.resized++
	return true
}

// removalLate reports whether a removal that was sent may still be applied. Etcd applies it within the lock's TTL or
// never, and no voter leaves a resized cluster during that time.
func (w *world) removalLate() bool {
	for i := range w.n {
		if h := &w.hosts[i]; h.lateRemove != 0 || h.phase == sent && h.step == removeMember {
			return true
		}
	}
	return false
}

// clearsSuccessor is the argument of evRetire with which an operator lets any host replace the retired one.
const clearsSuccessor = maxHosts + 1

// retire applies an operator's request to retire a host, or to undo that. The request is refused if too few hosts would
// be left, or if the host is in an operation. But a host that is down in its operation is retired as lost, which
// releases the operation. If arg is not 0, the operator names host arg-1 as the successor of host i or, with
// clearsSuccessor, clears the successor.
func (m *machine) retire(w *world, i int, arg uint8) bool {
	if w.retires >= 2*uint8(m.Retirements) || !w.quorum() {
		return false
	}
	switch {
	case arg == clearsSuccessor:
		if int(w.retired) != i+1 || w.successor == 0 {
			return false
		}
		arg, w.successor = 0, 0
	case arg != 0 && !m.mayReplace(w, i, int(arg)-1):
		return false
	case int(w.retired) == i+1 && arg != 0: // the operator names a different successor
	case int(w.retired) == i+1:
		w.retired, w.successor = 0, 0
	case w.retired != 0:
		return false
	case arg == 0 && m.Successor:
		return false
	case w.cycles(i) && w.hosts[i].down != 0:
		if !w.release() {
			return false
		}
		w.retireHost(i)
	case w.n-1-int(bit(w.permanent != 0)) < m.target(w.resized).Voters, w.inOperation(i):
		return false
	default:
		w.retireHost(i)
	}
	if arg != 0 {
		w.successor = arg
	}
	w.retires++
	return true
}

// mayReplace reports whether an operator may name host j to replace host i.
func (m *machine) mayReplace(w *world, i, j int) bool {
	learns := w.learnerAt()
	joins := w.op != 0 && w.opCycle|w.opRemove|w.opLeave == 0 && int(w.opHost) != j
	voters, _ := w.votes()
	switch {
	case !m.Successor, j >= w.n, i == j, int(w.successor) == j+1, voters-1 >= m.target(w.resized).Voters:
		return false
	case learns >= 0 && learns != j, joins:
		return false
	}
	return w.hosts[i].list == voter && w.hosts[j].list != voter && w.present(j) && w.ready(j)
}

// retireHost records that a host is retired and, if no size is recorded yet, the size of the cluster.
func (w *world) retireHost(i int) {
	w.retired = uint8(i) + 1
	w.resized = max(w.resized, 2*bit(w.resized == 0))
}

// inOperation reports whether a host is in an operation.
func (w *world) inOperation(i int) bool { return w.ownsOperation(i) || w.hosts[i].inOperation() }

// isRetired reports whether a host is retired.
func (w *world) isRetired(i int) bool { return int(w.retired) == i+1 }

// retiring returns the number of voters on retired hosts.
func (w *world) retiring() int {
	return int(bit(w.retired != 0 && w.hosts[max(w.retired, 1)-1].list == voter))
}

func (s *observation) retiredView() []policy.Retired {
	if s.retired == 0 {
		return nil
	}
	name := hostName(int(s.retired - 1))
	return []policy.Retired{{
		Host: name, PeerURL: s.peerURL(int(s.retired - 1)), MemberID: memberID(int(s.retired - 1)),
		Successor: s.successorView(), By: "root", Reason: "testing",
	}}
}

func (s *observation) successorView() record.Successor {
	if s.successor == 0 {
		return record.Successor{}
	}
	name := hostName(int(s.successor - 1))
	return record.Successor{Host: name, Name: name, PeerURL: s.peerURL(int(s.successor - 1))}
}

// leaves reports whether the operation is the leave of this host's member.
func (w *world) leaves(h int) bool { return w.opLeave != 0 && w.ownsOperation(h) }

// putLeave creates the record of the leave of host h.
func (w *world) putLeave(h int, gone bool) {
	w.op, w.opLeave, w.opReplace, w.opHost, w.opLeft, w.opPhase, w.opID, w.opBoot, w.opOld = 1, 1, 1, uint8(h), 0,
		phaseBegun, 1+bit(gone || w.hosts[h].list == unlisted), 1, 0
	w.opStandby, w.rpTarget, w.rpGone, w.opVotes = 0, uint8(h), bit(w.hosts[h].list == unlisted), 1
}

func (s *observation) leaveOp() *policy.Op {
	name := hostName(int(s.opHost))
	op := &policy.Op{
		Kind: policy.KindLeave, Host: name, HostName: name, Phase: opPhase(s.opPhase), Token: tokenPast,
		SameBoot: s.opBoot != 0 || s.opHost != s.self, Elapsed: long(s.opOld), OrphanedFor: long(s.orphan),
		WrittenFor: ages,
	}
	switch s.opPhase {
	case phaseReady:
		op.Phase = policy.PhaseRemoving
	case phaseRollback:
		op.WrittenFor = long(s.opReported)
		op.Outcome, op.Reason = policy.Orphaned, string(policy.Orphaned)+": it was aborted"
	}
	return op
}

// judgeSize checks that a voter leaves only while there are more voters than the recorded size, that a learner leaves
// only if none is needed or its host is retired, that no other voter leaves instead of a retired one, that no retired
// host joins, and that no host joins instead of a named successor.
func (m *machine) judgeSize(w *world, h int, c choice) breach {
	target := m.target(w.resized)
	voters, _ := w.votes()
	leaves := c.step == beginLeave || w.opLeave != 0 && (c.step == setRemoving || c.step == removeMember)
	if !w.isRetired(h) {
		voters -= w.retiring()
	}
	voterLeaves := w.hosts[h].list == voter && target.Resized && voters > target.Voters
	surplus := target.Resized && voters >= target.Voters && target.Standbys == 0 // no learner is needed
	standbyLeaves := w.hosts[h].list == learner && (surplus || w.isRetired(h))
	joins := c.step == beginVoter || c.step == beginStandby || c.step == addLearner || c.step == promote
	kept := w.successor != 0 && w.retiring() > 0 && w.hosts[w.successor-1].list != voter &&
		int(w.successor) != h+1 && w.opReplace == 0
	all, _ := w.votes()
	switch {
	case joins && kept && all-w.retiring() >= target.Voters-1:
		return successorIgnored
	case leaves && w.isPermanent(h) && !w.isRetired(h):
		return permanentRemoved
	case leaves && !voterLeaves && !standbyLeaves:
		return leftUnasked
	case joins && w.isRetired(h):
		return retiredJoins
	}
	return fine
}

// judgeLeave checks a step of a leave against the world at the time of the view.
func (w *world) judgeLeave(h int, c choice, leads bool) breach {
	voters, known := 0, 0
	for i := range w.n {
		g := &w.hosts[i]
		if g.list == voter {
			voters++
			known += int(bit(i != h && w.serves(i) && w.present(i) && (g.health == healthy || g.health == clockWrong)))
		}
	}
	switch {
	case c.step != beginLeave && !w.leaves(h):
		return removedWithoutOperation
	case c.step == removeMember && (w.opPhase != phaseReady || int(c.target) != h || w.rpGone != 0):
		return removedWithoutOperation
	case c.step != beginLeave && w.opReported == 0 && w.hosts[h].list == voter: // no quorum depends on a standby
		return replacedOnOldReports
	case w.hosts[h].list == voter && known < voters-1:
		return removedAtRisk
	case c.step == beginLeave && w.stable == 0:
		return unsettled
	case c.step != beginLeave && leads:
		return leaderRemoved
	}
	return fine
}

// resizePromises returns the promises about resized clusters and retired hosts.
func resizePromises() map[breach]promise {
	return map[breach]promise{
		retiredJoins:     {"P9", "a retired host joins"},
		successorIgnored: {"P9", "a host joins in the place that is kept for the host that an operator named"},
		leftUnasked: {
			"P9", "a voter leaves although the cluster does not have more voters than its recorded size",
		},
	}
}

// smallResizes returns the scopes of resized clusters and retired hosts that every test run explores.
func smallResizes() []Scenario {
	return []Scenario{
		{
			Name: "a voter retired", Hosts: 4, Voters: 3, Target: policy.Target{Voters: 3}, Retirements: 1,
			Liveness: true,
		},
		{
			Name: "a voter or the standby retired", Hosts: 3, Voters: 1, Target: policy.Target{Voters: 1, Standbys: 1},
			Retirements: 1, Liveness: true,
		},
		{
			Name: "the only voter retired, a fault", Hosts: 2, Voters: 1, Target: policy.Target{Voters: 1},
			Retirements: 1, Faults: AllFaults, Budget: 1, Liveness: true,
		},
		{
			Name: "three voters become one", Hosts: 3, Voters: 3, Target: policy.Target{Voters: 3}, ResizeTo: 1,
			Liveness: true,
		},
		{
			Name: "a voter replaced by a named host", Hosts: 5, Voters: 3, Target: policy.Target{Voters: 3},
			Retirements: 1, Successor: true, Liveness: true,
		},
		{
			Name: "one voter becomes three", Hosts: 3, Voters: 1, Target: policy.Target{Voters: 1}, ResizeTo: 3,
			Liveness: true,
		},
		{
			Name: "three voters become one, a fault", Hosts: 3, Voters: 3, Target: policy.Target{Voters: 3},
			ResizeTo: 1,
			Faults:   AllFaults, Budget: 1, Liveness: true,
		},
		{
			Name: "five voters become three", Hosts: 5, Voters: 5, Target: policy.Target{Voters: 5}, ResizeTo: 3,
			Liveness: true,
		},
	}
}

// Resizes returns the scopes of resized clusters, together with other operations.
func Resizes() []Scenario {
	three, five := policy.Target{Voters: 3}, policy.Target{Voters: 5}
	return append(smallResizes(),
		Scenario{
			Name: "a voter retired, a fault", Hosts: 4, Voters: 3, Target: three, Retirements: 1, Faults: AllFaults,
			Budget: 1, Liveness: true, Long: true,
		},
		Scenario{
			Name: "the only voter replaced by a named host, a fault", Hosts: 3, Voters: 1,
			Target: policy.Target{Voters: 1}, Retirements: 1, Successor: true, Faults: AllFaults, Budget: 1,
			Liveness: true, Long: true,
		},
		Scenario{
			Name: "a voter replaced by a named standby", Hosts: 4, Voters: 1,
			Target: policy.Target{Voters: 1, Standbys: 1}, Retirements: 1, Successor: true, Liveness: true,
		},
		Scenario{
			Name: "a voter or the standby retired, its disk replaced", Hosts: 3, Voters: 1,
			Target: policy.Target{Voters: 1, Standbys: 1}, Retirements: 1, Faults: Swap, Budget: 1, Liveness: true,
		},
		Scenario{
			Name: "a voter retired, one host taken down", Hosts: 4, Voters: 3, Target: three, Retirements: 1,
			Requests: 1, Liveness: true, Long: true,
		},
		Scenario{
			Name: "a voter lost in maintenance, retired and removed", Hosts: 3, Voters: 3, Target: three, Requests: 1,
			Retirements: 1, Removals: 1, Faults: HostCrash, Budget: 1, Long: true,
		},
		Scenario{
			Name: "a voter lost in maintenance, retired", Hosts: 4, Voters: 3, Target: three, Requests: 1,
			Retirements: 1, Faults: HostCrash, Budget: 1, Liveness: true, Long: true,
		},
		Scenario{
			Name: "a voter retired, a dead one replaced", Hosts: 5, Voters: 3, Target: three, Retirements: 1,
			Repair: true,
			Faults: HostCrash, Budget: 1, Liveness: true, Long: true,
		},
		Scenario{
			Name: "five voters become three, a fault", Hosts: 5, Voters: 5, Target: five, ResizeTo: 3,
			Faults: AllFaults, Budget: 1, Liveness: true, Long: true,
		},
		Scenario{
			Name: "three voters become one, 2 faults", Hosts: 3, Voters: 3, Target: three, ResizeTo: 1,
			Faults: AllFaults, Budget: 2, Liveness: true, Long: true,
		},
		Scenario{
			Name: "five voters become three, one host taken down", Hosts: 5, Voters: 5, Target: five, ResizeTo: 3,
			Requests: 1,
			Liveness: true,
		},
		Scenario{
			Name: "three voters become one, one voter removed", Hosts: 3, Voters: 3, Target: three, ResizeTo: 1,
			Removals: 1, Liveness: true,
		},
		Scenario{
			Name: "five voters become three, one voter dies", Hosts: 5, Voters: 5, Target: five, ResizeTo: 3,
			Repair: true, Faults: HostCrash, Budget: 1, Liveness: true,
		},
		Scenario{
			Name: "three voters become five, a fault", Hosts: 5, Voters: 3, Target: three, ResizeTo: 5,
			Faults: AllFaults, Budget: 1, Liveness: true, Long: true,
		},
	)
}
