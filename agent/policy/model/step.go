// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package model

import (
	"fmt"

	"github.com/quorumd/quorumd/agent/policy"
)

// The steps of the policy. If a step of the policy has several effects in the model, each effect is a step here.
const (
	none uint8 = iota
	takeLock
	releaseLock
	beginVoter
	beginStandby
	moveAside
	addLearner
	writeEnv
	writeNewEnv
	startUnit
	stopUnit
	promote
	stamp // set-phase that only writes the new token to the record
	setAdded
	setStarted
	setPromoted
	rollBackKeep // roll-back; the record keeps its member
	rollBackOwn  // roll-back; the record names this host's member
	rollBackLeft // roll-back; the record is for a learner without a join
	removeLearner
	endJoined
	endFailed
	finishBootstrap
	beginCycle
	setReady
	setDown
	setBack
	transferLeadership
	restartUnit
	takeDown
	reboot
	endCycle // end-operation; the request is over
	endKeep  // end-operation; the request remains queued
	runCommand
	beginAgain
	beginRemoval
	setRemoving
	removeMember
	endRemoval
	stepDown
	beginReplace
	takeDownHeld    // take-down, with the start guard
	startAsIs       // start-unit that keeps the start guard, which only a mistake does
	setBegun        // an operation returns to its first phase: another one goes first, or a lasting condition blocks it
	beginRemoveLost // a replacement in which a host removes its own lost member and a standby becomes the next voter
	beginLeave      // this host begins to leave, because the cluster was resized or the host was retired
	deleteOld       // this host deletes the database from before a defragmentation
	updateMember    // this host registers the new peer URL of its member
	restoreMember   // this host registers the old peer URL of its member again
	writeURL        // write-env with the configured peer URL, during a readdress
	setVerify
	takeDownURL    // take-down, after the environment was written for a readdress
	beginReaddress // begin-cycle for a readdress
)

// writesRecord reports whether the step is one fenced write of the operation record.
func writesRecord(step uint8) bool {
	switch step {
	case beginVoter, beginStandby, stamp, setAdded, setStarted, setPromoted, rollBackKeep, rollBackOwn, rollBackLeft,
		endJoined, endFailed,
		beginCycle, beginReaddress, setReady, setDown, setBack, setBegun, setVerify, endCycle, endKeep,
		beginAgain,
		beginRemoval, setRemoving, endRemoval, beginReplace, beginRemoveLost, beginLeave:
		return true
	}
	return false
}

// begins reports whether the step creates the record of an operation.
func begins(step uint8) bool {
	return step == beginVoter || step == beginStandby || step == rollBackLeft || step == beginCycle ||
		step == beginReaddress ||
		step == beginAgain || step == beginRemoval || step == beginReplace || step == beginRemoveLost ||
		step == beginLeave
}

// changesMembership reports whether the step is a membership change, which no transaction can fence.
func changesMembership(step uint8) bool {
	return step == addLearner || step == promote || step == removeLearner || step == removeMember ||
		step == updateMember || step == restoreMember
}

// underLock reports whether only the holder of the lock may take a step. A test compares this list with the
// declarations in the policy.
func underLock(step uint8) bool {
	return changesMembership(step) || unfencedCall(step) || writesRecord(step) || step == moveAside ||
		step == runCommand || step == deleteOld
}

// namesTarget reports whether a step names a member that may be another host's.
func namesTarget(step uint8) bool {
	switch step {
	case removeLearner, rollBackLeft, removeMember, stepDown, beginReplace, beginRemoveLost:
		return true
	}
	return false
}

// kindOf returns the policy's kind of a step.
func kindOf(step uint8) policy.StepKind {
	return [...]policy.StepKind{
		policy.StepNone, policy.StepTakeLock, policy.StepReleaseLock, policy.StepBeginJoin, policy.StepBeginJoin,
		policy.StepMoveDataAside, policy.StepAddLearner, policy.StepWriteEnv, policy.StepWriteEnv, policy.StepStartUnit,
		policy.StepStopUnit, policy.StepPromote, policy.StepSetPhase, policy.StepSetPhase, policy.StepSetPhase,
		policy.StepSetPhase, policy.StepRollBack, policy.StepRollBack, policy.StepRollBack, policy.StepRemoveLearner,
		policy.StepEndOp, policy.StepEndOp, policy.StepFinishBootstrap,
		policy.StepBeginCycle, policy.StepSetPhase, policy.StepSetPhase, policy.StepSetPhase,
		policy.StepTransferLeadership,
		policy.StepRestartUnit, policy.StepTakeDown, policy.StepReboot, policy.StepEndOp, policy.StepEndOp,
		policy.StepRunCommand, policy.StepRecordAgain,
		policy.StepBeginRemoval, policy.StepSetPhase, policy.StepRemoveMember, policy.StepEndOp,
		policy.StepLeaderStepsDown,
		policy.StepBeginReplace, policy.StepTakeDown, policy.StepStartUnit, policy.StepSetPhase,
		policy.StepBeginReplace, policy.StepBeginLeave, policy.StepDeleteOld, policy.StepUpdateMember,
		policy.StepUpdateMember,
		policy.StepWriteEnv, policy.StepSetPhase, policy.StepTakeDown, policy.StepBeginCycle,
	}[step]
}

// choice is the part of a decision that the model uses.
type choice struct {
	step         uint8
	target       uint8
	outcome      policy.ReasonCode // the outcome of the operation, if the step ends it or rolls it back
	startGuard   policy.StartGuard // the change of the start guard
	request      policy.RequestChange
	removesGuard bool // the start guard is removed before the request ends
	removed      bool // the removal request ends
	transferred  bool // the request to transfer leadership ends
	self         policy.SelfNote
	join         policy.JoinNote
	repairs      bool              // the ejection of the replaced host is recorded
	ready        bool              // the host would publish that it is ready
	inVain       bool              // the host would roll back or end at once what it begins
	quiet        bool              // the host would poll the members only in every second round
	reason       policy.ReasonCode // the first reason
	why          string
}

// choose returns the choice for a decision. It panics on an unknown step, because a new step must be modelled.
func (s *observation) choose(v *policy.View, d policy.Decision) choice {
	c := choice{
		ready: d.Waiting == "", outcome: d.Step.Outcome, startGuard: d.Notes.StartGuard,
		request:      d.Notes.Request.Change,
		removesGuard: d.Notes.Request.Guard == policy.GuardCleared,
		removed:      d.Notes.Removal.Ends, transferred: d.Notes.Transfer.Ends, self: d.Notes.Self,
		join: d.Notes.Join, repairs: d.Notes.Repair,
	}
	if len(d.Reasons) > 0 {
		c.reason, c.why = d.Reasons[0].Code, d.Reasons[0].Text
	} else if d.Step.Kind != policy.StepNone {
		c.why = d.Step.Why
	}
	c.step, c.target = s.translate(v, d)
	return c
}

func (s *observation) translate(v *policy.View, d policy.Decision) (kind, target uint8) {
	step := d.Step
	if step.Kind == policy.StepBeginCycle && s.work == readdressing {
		return beginReaddress, 0
	}
	simple := map[policy.StepKind]uint8{
		policy.StepNone: none, policy.StepTakeLock: takeLock, policy.StepReleaseLock: releaseLock,
		policy.StepMoveDataAside: moveAside, policy.StepAddLearner: addLearner,
		policy.StepStopUnit: stopUnit, policy.StepPromote: promote, policy.StepFinishBootstrap: finishBootstrap,
		policy.StepBeginCycle:  beginCycle,
		policy.StepRestartUnit: restartUnit,
		policy.StepReboot:      reboot, policy.StepRunCommand: runCommand,
		policy.StepDefragment: runCommand, policy.StepDeleteOld: deleteOld,
		policy.StepRecordAgain:  beginAgain,
		policy.StepBeginRemoval: beginRemoval,
		policy.StepBeginLeave:   beginLeave,
	}
	if kind, ok := simple[step.Kind]; ok && step.Guard == policy.GuardUnchanged {
		return kind, 0
	}
	switch step.Kind {
	case policy.StepTakeDown, policy.StepStartUnit:
		return guarded(step), 0
	case policy.StepBeginJoin:
		if step.Target == policy.RoleStandby || step.Target == policy.RoleLearner {
			return beginStandby, 0
		}
		return beginVoter, 0
	case policy.StepUpdateMember:
		if step.PeerURL == peerURL(int(s.self), false) {
			return restoreMember, 0
		}
		return updateMember, 0
	case policy.StepWriteEnv:
		if s.ownCycle() {
			return writeURL, 0
		}
		if environment(*v) == newEnv {
			return writeNewEnv, 0
		}
		return writeEnv, 0
	case policy.StepSetPhase:
		return setPhaseStep(v, step), 0
	case policy.StepRollBack:
		switch {
		case v.Op == nil:
			return rollBackLeft, uint8(step.MemberID - 1)
		case step.MemberID == 0 || step.MemberID == v.Op.MemberID:
			return rollBackKeep, 0
		case step.MemberID == memberID(int(s.self)):
			return rollBackOwn, 0
		}
	case policy.StepRemoveLearner:
		return removeLearner, uint8(step.MemberID - 1)
	case policy.StepTransferLeadership:
		if v.Op == nil {
			return transferLeadership, uint8(step.MemberID - 1)
		}
		return transferLeadership, 0
	case policy.StepLeaderStepsDown:
		return stepDown, uint8(step.MemberID - 1)
	case policy.StepBeginReplace:
		if step.Target == policy.RoleSpare {
			return beginRemoveLost, uint8(step.MemberID - 1)
		}
		return beginReplace, uint8(step.MemberID - 1)
	case policy.StepRemoveMember:
		return removeMember, uint8(step.MemberID - 1)
	case policy.StepEndOp:
		return s.endStep(step.Outcome, d.Notes.Request.Change), 0
	}
	panic(fmt.Sprintf("the model does not know the step %+v", step))
}

// guarded returns the variant of a take-down or a start that has the step's change of the start guard.
func guarded(step policy.Step) uint8 {
	if step.Kind == policy.StepTakeDown && step.WriteEnv && step.Guard == policy.GuardUnchanged {
		return takeDownURL
	}
	for _, kind := range []uint8{takeDown, takeDownHeld, startUnit, startAsIs} {
		if kindOf(kind) == step.Kind && guardOf(kind) == step.Guard {
			return kind
		}
	}
	panic(fmt.Sprintf("the model does not know the step %+v", step))
}

// guardOf returns the change of the start guard before a step begins.
func guardOf(step uint8) policy.StartGuard {
	switch step {
	case startUnit:
		return policy.GuardCleared
	case takeDownHeld:
		return policy.GuardSet
	}
	return policy.GuardUnchanged
}

func (s *observation) endStep(outcome policy.ReasonCode, note policy.RequestChange) uint8 {
	switch {
	case s.opRemove != 0:
		return endRemoval
	case s.opCycle != 0 && note == policy.RequestEnding:
		return endCycle
	case s.opCycle != 0:
		return endKeep
	case outcome == policy.Joined:
		return endJoined
	}
	return endFailed
}

func setPhaseStep(v *policy.View, step policy.Step) uint8 {
	if v.Op.Token != v.Lock.Token {
		return stamp
	}
	switch step.Phase {
	case policy.PhaseAdded:
		return setAdded
	case policy.PhaseStarted:
		return setStarted
	case policy.PhasePromoted:
		return setPromoted
	case policy.PhaseBegun:
		return setBegun
	case policy.PhaseReady:
		return setReady
	case policy.PhaseDown:
		return setDown
	case policy.PhaseBack:
		return setBack
	case policy.PhaseRemoving:
		return setRemoving
	case policy.PhaseVerify:
		return setVerify
	}
	panic(fmt.Sprintf("the model does not know the step %+v", step))
}
