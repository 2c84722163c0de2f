// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"slices"
	"testing"
)

// declaredSteps returns the expected declaration of every step: whether it needs the lock, and how many calls limit it.
// The list repeats the declarations, so that a typo there cannot silently free a step from the lock.
func declaredSteps() []StepInfo {
	return []StepInfo{
		{Kind: StepTakeLock, Calls: 2, Doing: "taking the lock"},
		{Kind: StepReleaseLock, Calls: 2, Always: true, Doing: "releasing the lock"},
		{Kind: StepBeginJoin, Locked: true, Calls: 2, Doing: "recording the join"},
		{Kind: StepMoveDataAside, Locked: true, Calls: 2, Doing: "moving the old data directory aside"},
		{Kind: StepAddLearner, Locked: true, Calls: 3, Doing: "adding this host to the cluster as a learner"},
		{Kind: StepWriteEnv, Drives: true, Calls: 4, Doing: "writing etcd's environment"},
		{Kind: StepStartUnit, Drives: true, Calls: 4, Guard: GuardCleared, Doing: "starting etcd"},
		{
			Kind: StepStopUnit, Drives: true, Calls: 4,
			Doing: "stopping etcd: its member is no longer in the cluster",
		},
		{Kind: StepPromote, Locked: true, Calls: 3, Doing: "promoting the learner to voter"},
		{Kind: StepSetPhase, Locked: true, Calls: 2, Doing: "recording the operation's phase"},
		{Kind: StepRollBack, Locked: true, Calls: 2, Doing: "recording the rollback"},
		{Kind: StepRemoveLearner, Locked: true, Calls: 3, Doing: "removing the abandoned learner"},
		{Kind: StepEndOp, Locked: true, Calls: 2, Doing: "ending the operation"},
		{Kind: StepFinishBootstrap, Calls: 2, Doing: "recording that the cluster exists"},
		{Kind: StepBeginCycle, Locked: true, Calls: 2, Doing: "recording that this host is taken down"},
		{Kind: StepRunHooks, Locked: true, Calls: 3, Doing: "running the hooks"},
		{Kind: StepTransferLeadership, Locked: true, Calls: 3, Doing: "transferring leadership"},
		{Kind: StepLeaderStepsDown, Calls: 3, Led: true, Doing: "transferring leadership to a healthier voter"},
		{Kind: StepRestartUnit, Drives: true, Locked: true, Calls: 3, Doing: "restarting etcd"},
		{Kind: StepTakeDown, Drives: true, Locked: true, Calls: 3, Doing: "stopping etcd"},
		{Kind: StepReboot, Locked: true, Calls: 2, Doing: "rebooting the machine"},
		{Kind: StepRunCommand, Locked: true, Calls: 3, Doing: "running the command"},
		{Kind: StepDefragment, Locked: true, Calls: 2, Doing: "defragmenting etcd's database"},
		{
			Kind: StepDeleteOld, Locked: true, Calls: 3,
			Doing: "deleting etcd's database from before the defragmentation",
		},
		{
			Kind: StepRecordAgain, Locked: true, Calls: 2,
			Doing: "restoring the record of this host's operation",
		},
		{Kind: StepBeginRemoval, Locked: true, Calls: 2, Doing: "recording the removal of a member"},
		{Kind: StepRemoveMember, Locked: true, Calls: 3, Doing: "removing a member for good"},
		{Kind: StepBeginReplace, Locked: true, Calls: 2, Doing: "recording that this host replaces a voter"},
		{Kind: StepBeginLeave, Locked: true, Calls: 2, Doing: "recording that this host's voter leaves the cluster"},
		{Kind: StepUpdateMember, Locked: true, Calls: 3, Doing: "registering this member's peer URL"},
		{Kind: StepClaimPermit, Calls: 2, Doing: "claiming the permit to free space"},
		{Kind: StepWritePermits, Calls: 2, Doing: "writing the permits to free space after a NOSPACE alarm"},
		{Kind: StepCompact, Calls: 3, Doing: "compacting the history of the keys"},
		{
			Kind: StepLeadElsewhere, Calls: 3,
			Doing: "transferring leadership, so that the leader's database can be defragmented",
		},
		{Kind: StepDefragmentOnline, Calls: 2, Doing: "starting to defragment the database of a member online"},
		{Kind: StepDisarmNoSpace, Calls: 4, Doing: "disarming the NOSPACE alarm"},
		{Kind: StepEnableDowngrade, Locked: true, Calls: 3, Doing: "enabling etcd's downgrade job"},
		{Kind: StepCancelDowngrade, Locked: true, Calls: 3, Doing: "cancelling etcd's downgrade job"},
		{Kind: StepStopForRecovery, Drives: true, Calls: 4, Guard: GuardSet, Doing: "stopping etcd for the recovery"},
		{Kind: StepCopyData, Calls: 2, Guard: GuardSet, Doing: "starting to build the data of the new cluster"},
		{Kind: StepPlaceCopy, Calls: 4, Doing: "moving the old data aside and the copy into place"},
		{Kind: StepLayAside, Calls: 4, Guard: GuardSet, Doing: "moving the old data aside for the recovery"},
		{Kind: StepEndRecovery, Calls: 4, Doing: "ending the recovery on this host"},
	}
}

func TestEveryStepHasItsLockAndTimeLimit(t *testing.T) {
	t.Parallel()
	if !slices.Equal(Steps(), declaredSteps()) {
		t.Errorf("the steps are declared as\n%+v\nwant\n%+v", Steps(), declaredSteps())
	}
	for _, want := range declaredSteps() {
		if got := want.Kind.Info(); got != want {
			t.Errorf("%s returns %+v", want.Kind, got)
		}
	}
	if got := StepKind("dance").Info(); got != (StepInfo{Kind: "dance"}) {
		t.Errorf("an undeclared step returns %+v", got)
	}
}

func TestAStepDescribesItself(t *testing.T) {
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
			Step{Kind: StepSetPhase, Phase: PhaseBack, Why: "again"},
			"set-phase (again)",
			"recording the operation's phase: back: again",
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

// The rule for timing.lockTTL in package config allows a step under the lock three calls after the one that confirms
// the lock. With more, a step would never begin with the shortest TTL.
func TestNoStepUnderTheLockNeedsMoreCallsThanTheLocksTTLAllows(t *testing.T) {
	t.Parallel()
	for _, s := range Steps() {
		if s.Locked && s.Calls > 3 {
			t.Errorf("%s needs %d calls", s.Kind, s.Calls)
		}
	}
}
