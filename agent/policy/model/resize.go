// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package model

import (
	"github.com/quorumd/quorumd/agent/policy"
)

// resizeState is the size that an operator has recorded, and the operation in which a voter leaves because of it. Such
// an operation also sets opReplace, with its own host as the replaced one: the reports of the other voters' agents, the
// removal that may be applied late, and the ejection that is not due are the same.
type resizeState struct {
	resized uint8 // 1: to the scenario's ResizeTo; 2: back to its Target
	opLeave uint8 // the operation is a leave; its phase is begun, ready once the removal may have been sent, or rollback
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

// leaves reports whether the operation is the leave of this host's voter.
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

// judgeSize checks that a voter leaves only while there are more voters than the recorded size.
func (m *machine) judgeSize(w *world, c choice) breach {
	target := m.target(w.resized)
	voters, _ := w.votes()
	leaves := c.step == beginLeave || w.opLeave != 0 && (c.step == setRemoving || c.step == removeMember)
	if leaves && (!target.Resized || voters <= target.Voters) {
		return leftUnasked
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
	case c.step != beginLeave && w.opReported == 0:
		return replacedOnOldReports
	case known < voters-1:
		return removedAtRisk
	case c.step == beginLeave && w.stable == 0:
		return unsettled
	case c.step != beginLeave && leads:
		return leaderRemoved
	}
	return fine
}

// resizePromises returns the promises about voters that leave a smaller cluster.
func resizePromises() map[breach]promise {
	return map[breach]promise{
		leftUnasked: {"P9", "a voter leaves although the cluster has no more voters than its recorded size"},
	}
}

// smallResizes returns the scopes of resized clusters that every test run explores.
func smallResizes() []Scenario {
	return []Scenario{
		{
			Name: "three voters become one", Hosts: 3, Voters: 3, Target: policy.Target{Voters: 3}, ResizeTo: 1,
			Liveness: true,
		},
		{
			Name: "one voter becomes three", Hosts: 3, Voters: 1, Target: policy.Target{Voters: 1}, ResizeTo: 3,
			Liveness: true,
		},
		{
			Name: "three voters become one, a fault", Hosts: 3, Voters: 3, Target: policy.Target{Voters: 3}, ResizeTo: 1,
			Faults: AllFaults, Budget: 1, Liveness: true,
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
			Name: "five voters become three, a fault", Hosts: 5, Voters: 5, Target: five, ResizeTo: 3,
			Faults: AllFaults, Budget: 1, Liveness: true, Long: true,
		},
		Scenario{
			Name: "three voters become one, 2 faults", Hosts: 3, Voters: 3, Target: three, ResizeTo: 1,
			Faults: AllFaults, Budget: 2, Liveness: true, Long: true,
		},
		Scenario{
			Name: "three voters become one, one taken down", Hosts: 3, Voters: 3, Target: three, ResizeTo: 1, Requests: 1,
			Liveness: true,
		},
		Scenario{
			Name: "three voters become one, one removed", Hosts: 3, Voters: 3, Target: three, ResizeTo: 1, Removals: 1,
			Liveness: true,
		},
		Scenario{
			Name: "five voters become three, one dies", Hosts: 5, Voters: 5, Target: five, ResizeTo: 3, Repair: true,
			Faults: HostCrash, Budget: 1, Liveness: true,
		},
		Scenario{
			Name: "three voters become five, a fault", Hosts: 5, Voters: 3, Target: three, ResizeTo: 5,
			Faults: AllFaults, Budget: 1, Liveness: true, Long: true,
		},
	)
}
