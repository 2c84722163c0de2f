// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"slices"
	"testing"
)

// declaredSteps is what the table of steps must say: which ones need the lock, and how many calls bound each. It is a
// list of its own, so that nobody unlocks a step by a slip of one word.
func declaredSteps() []StepInfo {
	return []StepInfo{
		{StepTakeLock, false, 2, "taking the lock"},
		{StepReleaseLock, false, 2, "giving the lock back"},
		{StepBeginJoin, true, 2, "recording the join"},
		{StepMoveDataAside, true, 2, "moving the old data directory aside"},
		{StepAddLearner, true, 3, "adding this host to the cluster as a learner"},
		{StepWriteEnv, false, 4, "writing etcd's environment"},
		{StepStartUnit, false, 4, "starting etcd"},
		{StepStopUnit, false, 4, "stopping etcd, which is no member of the cluster any more"},
		{StepPromote, true, 3, "promoting the learner to voter"},
		{StepSetPhase, true, 2, "recording how far the operation is"},
		{StepRollBack, true, 2, "giving the join up"},
		{StepRemoveLearner, true, 3, "removing the learner of a join that was given up"},
		{StepEndOp, true, 2, "ending the operation"},
		{StepFinishBootstrap, false, 2, "recording that the cluster exists"},
		{StepBeginCycle, true, 2, "recording that this host is taken down"},
		{StepRunHooks, true, 3, "running the hooks"},
		{StepMoveLeader, true, 3, "moving the leadership"},
		{StepGiveWay, false, 3, "handing the leadership over"},
		{StepRestartUnit, true, 3, "restarting etcd"},
		{StepTakeDown, true, 3, "stopping etcd"},
		{StepReboot, true, 2, "rebooting the machine"},
		{StepRunCommand, true, 3, "running the command"},
		{StepRecordAgain, true, 2, "recording again that this host is taken down"},
		{StepBeginRemoval, true, 2, "recording that a member is to be removed"},
		{StepRemoveMember, true, 3, "removing a member for good"},
		{StepBeginReplace, true, 2, "recording that this host takes the place of a voter"},
		{StepStopForRecovery, false, 4, "stopping etcd, for the recovery"},
		{StepCopyData, false, 2, "beginning to copy the survivor's data"},
		{StepPlaceCopy, false, 4, "moving the old data aside and the copy in their place"},
		{StepLayAside, false, 4, "moving the old data aside, for the recovery"},
		{StepEndRecovery, false, 4, "ending the recovery on this host"},
	}
}

func TestEveryStepNeedsTheLockAndIsBoundAsItShallBe(t *testing.T) {
	t.Parallel()
	if !slices.Equal(Steps(), declaredSteps()) {
		t.Errorf("the steps are declared as\n%+v\nand shall be\n%+v", Steps(), declaredSteps())
	}
	for _, want := range declaredSteps() {
		if got := want.Kind.Info(); got != want {
			t.Errorf("%s gives %+v", want.Kind, got)
		}
	}
	if got := StepKind("dance").Info(); got != (StepInfo{Kind: "dance"}) {
		t.Errorf("a step that nobody has declared gives %+v", got)
	}
}

func TestAStepSaysWhatItDoes(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		step       Step
		line, text string
	}{
		{Step{Kind: StepPromote, MemberID: 3}, "promote", "promoting the learner to voter"},
		{
			Step{Kind: StepEndOp, Outcome: Joined, Why: "it votes"},
			"end-operation (it votes)",
			"ending the operation: it votes",
		},
		{Step{Kind: StepBeginJoin, Target: RoleVoter}, "begin-join", "recording the join as voter"},
		{
			Step{Kind: StepSetPhase, Phase: PhaseBack, Why: "anew"},
			"set-phase (anew)",
			"recording how far the operation is: back: anew",
		},
	} {
		if got := c.step.String(); got != c.line {
			t.Errorf("%+v is %q, want %q", c.step, got, c.line)
		}
		if got := c.step.Text(); got != c.text {
			t.Errorf("%+v does %q, want %q", c.step, got, c.text)
		}
	}
}
