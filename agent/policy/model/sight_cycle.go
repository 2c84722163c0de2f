// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package model

import (
	"time"

	"github.com/quorumd/quorumd/agent/policy"
)

// cycleView adds this host's request.
func (s *sight) cycleView(v *policy.View) {
	if s.ask == nothing {
		return
	}
	asked := s.standing().Asked()
	asked.DoneFor = long(bit(asked.Done))
	asked.Overdue, asked.RebootFor = s.ownCycle() && s.opOld > 0, policy.Never
	if s.reachable != 0 {
		asked.Released, asked.RecordDeleted = s.standing().Gone(s.ownCycle(), false, s.freed != 0)
	}
	v.Asked = &asked
	if s.ask == command {
		v.Asked.Command = program(s.did).State()
	}
	switch {
	case s.tried != 0 && s.reachable == 0 && s.ask == rebooted: // the host itself knows its own attempt
		v.Asked.RebootFor = 0
	case s.tried == 0 || !s.ownCycle():
	case s.opPhase == phaseDown:
		v.Asked.RebootFor = 0
	default:
		v.Failed = policy.FailedStep{Kind: policy.StepTransferLeadership, Text: "it timed out"}
	}
}

// ran reports whether etcd has run since the machine booted, where the model knows it: one that was stopped for a
// request may have been stopped before or after the boot.
func (s *sight) ran() bool {
	return s.unit != taken && s.data == current
}

func (s *sight) ownCycle() bool { return s.opCycle != 0 && s.opHost == s.self }

func (s *sight) cycleOp() *policy.Op {
	name := hostName(int(s.opHost))
	op := &policy.Op{
		Kind: policy.KindCycle, Host: name, HostName: name, Phase: opPhase(s.opPhase), Token: tokenPast,
		MemberID: memberID(int(s.opHost)),
		SameBoot: s.opBoot != 0 || !s.ownCycle(), Restarted: s.opRestarted != 0 && s.ownCycle(),
		// between the two limits for a leadership that stays
		WrittenFor: [...]time.Duration{0, 45 * time.Second, ages}[s.opOld],
	}
	if s.opToken != 0 {
		op.Token = tokenNow
	}
	return op
}

// askedAt returns the place in the queue. The order of hosts that were asked at the same time is open.
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
		policy.WorkReboot, policy.WorkCommand,
	}[ask]
}
