// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package act

import (
	"context"

	"github.com/quorumd/quorumd/agent/policy"
)

// way defines how a kind of step is taken. policy.Steps declares whether the step needs the lock, how long it may take,
// and its description for operators.
type way struct {
	kind policy.StepKind
	// first performs the checks and the writes to this host's disk that must precede a change of the start guard. It
	// may be nil.
	first func(ctx context.Context, t *task) error
	// do does the work. It runs outside the loop, and does not modify the loop's state.
	do func(ctx context.Context, t *task) error
	// begins and done update the loop's state, before the work and after it succeeded. They may be nil.
	begins, done func(t *task)
	// unsaid means that success is not recorded in the history.
	unsaid bool
}

// table defines how every kind of step is taken.
func (a *Actor) table() []way {
	return []way{
		{kind: policy.StepTakeLock, do: a.takeLock, begins: a.lockTaken, unsaid: true},
		{kind: policy.StepReleaseLock, do: a.releaseLock, unsaid: true},
		{kind: policy.StepSetPhase, do: a.setPhase},
		{kind: policy.StepRollBack, do: a.rollBack},
		{kind: policy.StepEndOp, do: a.endOp, unsaid: true}, // the history line that ends the operation reports success

		{kind: policy.StepBeginJoin, do: a.beginJoin},
		{kind: policy.StepMoveDataAside, do: a.moveDataAside},
		{kind: policy.StepAddLearner, do: a.addLearner},
		{kind: policy.StepPromote, do: a.promote, begins: a.promotionSent},
		{kind: policy.StepRemoveLearner, do: a.removeLearner},
		{kind: policy.StepFinishBootstrap, do: a.finishBootstrap},

		{
			kind: policy.StepWriteEnv, first: a.alone, begins: a.environmentBegun, do: a.writeEnvironment,
			done: a.environmentWritten,
		},
		{kind: policy.StepStartUnit, first: a.beforeStart, do: a.startUnit, begins: a.unitStarted},
		{kind: policy.StepStopUnit, do: a.stopUnit},

		{kind: policy.StepBeginCycle, do: a.beginCycle},
		{kind: policy.StepRecordAgain, do: a.recordAgain},
		{kind: policy.StepRunHooks, do: a.runHooks, done: a.hooksLaunched},
		{kind: policy.StepRunCommand, do: a.runCommand, done: a.commandLaunched},
		{kind: policy.StepDefragment, do: a.runCommand, done: a.commandLaunched},
		{kind: policy.StepDeleteOld, do: a.deleteOldDatabase},
		{kind: policy.StepTransferLeadership, do: a.moveLeader},
		{kind: policy.StepLeaderStepsDown, do: a.stepDown, begins: a.steppedDown},
		{kind: policy.StepRestartUnit, do: a.restartUnit},
		{
			kind: policy.StepTakeDown, first: a.noteStop, begins: a.environmentBegun, do: a.takeDown,
			done: a.environmentWritten,
		},
		{kind: policy.StepUpdateMember, do: a.updateMember, begins: a.updateSent, done: a.updateAnswered},
		{kind: policy.StepReboot, do: a.reboot, begins: a.rebootSent},

		{kind: policy.StepBeginRemoval, do: a.beginRemoval},
		{kind: policy.StepRemoveMember, do: a.removeMember},
		{kind: policy.StepBeginReplace, do: a.beginReplace},
		{kind: policy.StepBeginLeave, do: a.beginLeave},

		{kind: policy.StepWritePermits, do: a.writePermits, unsaid: true},
		{kind: policy.StepClaimPermit, do: a.claimPermit, begins: a.permitSent, done: a.permitClaimed},
		{kind: policy.StepCompact, first: a.mayFreeSpace, do: a.compact, done: a.compacted},
		{kind: policy.StepLeadElsewhere, first: a.mayFreeSpace, do: a.leadElsewhere},
		{kind: policy.StepDefragmentOnline, first: a.mayFreeSpace, do: a.defragmentOnline},
		{kind: policy.StepEnableDowngrade, do: a.enableDowngrade},
		{kind: policy.StepCancelDowngrade, do: a.cancelDowngrade},
		{kind: policy.StepDisarmNoSpace, first: a.mayFreeSpace, do: a.disarmNoSpace},

		{kind: policy.StepStopForRecovery, do: a.stopUnit},
		{kind: policy.StepCopyData, first: a.canRecover, do: a.copyData, begins: a.copyBegun},
		{kind: policy.StepPlaceCopy, first: a.canRecover, do: a.placeCopy},
		{kind: policy.StepLayAside, do: a.layAside},
		{kind: policy.StepEndRecovery, do: a.endRecovery},
	}
}
