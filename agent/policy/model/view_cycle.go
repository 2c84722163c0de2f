// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package model

import (
	"time"

	"github.com/quorumd/quorumd/agent/policy"
)

// cycleView adds this host's request to the view.
func (s *observation) cycleView(v *policy.View) {
	if s.work == noWork {
		return
	}
	asked := s.standing().Asked()
	asked.OverFor = long(bit(asked.Over))
	asked.Overdue, asked.RebootFor = s.ownCycle() && s.opOld > 0, policy.Never
	if s.reachable != 0 {
		asked.Released, asked.RecordDeleted = s.standing().Gone(s.ownCycle(), false, s.released != 0)
	}
	v.Asked = &asked
	if s.work == command {
		v.Asked.Command = program(s.program).State()
	}
	switch {
	case s.stepFailed != 0 && s.reachable == 0 && s.work == agentReboot: // the agent remembers its attempt
		v.Asked.RebootFor = 0
	case s.stepFailed == 0 || !s.ownCycle():
	case s.opPhase == phaseDown:
		v.Asked.RebootFor = 0
	default:
		v.Failed = policy.FailedStep{Kind: policy.StepTransferLeadership, Text: "it timed out"}
	}
}

// ran reports whether the view shows that etcd has run since the machine booted. If etcd was stopped for a request, the
// stop may have been before or after the boot.
func (s *observation) ran() bool {
	return s.unit != stoppedForRequest && s.data == current
}

func (s *observation) ownCycle() bool { return s.opCycle != 0 && s.opHost == s.self }

func (s *observation) cycleOp() *policy.Op {
	name := hostName(int(s.opHost))
	op := &policy.Op{
		Kind: policy.KindCycle, Host: name, HostName: name, Phase: opPhase(s.opPhase), Token: tokenPast,
		MemberID: memberID(int(s.opHost)),
		SameBoot: s.opBoot != 0 || !s.ownCycle(), Restarted: s.opRestarted != 0 && s.ownCycle(),
		// opOld 1 is between the two limits for a leadership transfer.
		WrittenFor: [...]time.Duration{0, 45 * time.Second, ages}[s.opOld],
	}
	s.readdressOp(op)
	if s.opToken != 0 {
		op.Token = tokenNow
	}
	return op
}

// askedAt returns the time of a request, which orders the queue. All orders of requests are explored.
func askedAt(self bool, r rank) int64 {
	switch {
	case self && r == selfFirst:
		return 1
	case self && r == selfLast:
		return 3
	}
	return 2
}

func work(ask uint8) policy.Work {
	return [...]policy.Work{
		"", policy.WorkMaintenance, policy.WorkMaintenance, policy.WorkRestart, policy.WorkReboot,
		policy.WorkReboot, policy.WorkMaintenance, policy.WorkCommand, policy.WorkReaddress,
	}[ask]
}
