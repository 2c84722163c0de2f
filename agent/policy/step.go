// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"fmt"
	"time"
)

// StepKind names a step.
type StepKind string

// The steps.
const (
	StepNone               StepKind = ""
	StepTakeLock           StepKind = "take-lock"
	StepReleaseLock        StepKind = "release-lock"
	StepBeginJoin          StepKind = "begin-join"
	StepMoveDataAside      StepKind = "move-data-aside"
	StepAddLearner         StepKind = "add-learner"
	StepWriteEnv           StepKind = "write-environment"
	StepStartUnit          StepKind = "start-unit"
	StepStopUnit           StepKind = "stop-unit"
	StepPromote            StepKind = "promote"
	StepSetPhase           StepKind = "set-phase"
	StepRollBack           StepKind = "roll-back"
	StepRemoveLearner      StepKind = "remove-learner"
	StepEndOp              StepKind = "end-operation"
	StepFinishBootstrap    StepKind = "finish-bootstrap"
	StepBeginCycle         StepKind = "begin-cycle"
	StepRunHooks           StepKind = "run-hooks"
	StepTransferLeadership StepKind = "transfer-leadership"
	StepLeaderStepsDown    StepKind = "step-down"
	StepRestartUnit        StepKind = "restart-unit"
	StepTakeDown           StepKind = "take-down"
	StepReboot             StepKind = "reboot"
	StepRunCommand         StepKind = "run-command"
	StepDefragment         StepKind = "defragment"
	StepDeleteOld          StepKind = "delete-old-database"
	StepRecordAgain        StepKind = "record-again"
	StepStopForRecovery    StepKind = "stop-for-recovery"
	StepCopyData           StepKind = "copy-data"
	StepPlaceCopy          StepKind = "place-copy"
	StepLayAside           StepKind = "lay-data-aside"
	StepEndRecovery        StepKind = "end-recovery"
	StepBeginRemoval       StepKind = "begin-removal"
	StepRemoveMember       StepKind = "remove-member"
	StepBeginReplace       StepKind = "begin-replace"
	StepBeginLeave         StepKind = "begin-leave"
	StepUpdateMember       StepKind = "update-member"
	StepClaimPermit        StepKind = "claim-permit"
	StepWritePermits       StepKind = "write-permits"
	StepCompact            StepKind = "compact"
	StepLeadElsewhere      StepKind = "lead-elsewhere"
	StepDefragmentOnline   StepKind = "defragment-online"
	StepDisarmNoSpace      StepKind = "disarm-no-space"
	StepEnableDowngrade    StepKind = "enable-downgrade"
	StepCancelDowngrade    StepKind = "cancel-downgrade"
)

// StepInfo declares a kind of step.
type StepInfo struct {
	Kind StepKind
	// Locked steps start only after a new transaction has confirmed that this agent holds the lock, and only if the
	// lock's validity covers the step.
	Locked bool
	// Calls limits the step: its context ends after the time that this number of calls may take.
	Calls int
	// Drives reports that the step starts or stops this host's etcd, or writes the environment with which it starts.
	Drives bool
	// Guard is how the start guard changes before the step begins, unless that depends on the view (see guardOf).
	Guard StartGuard
	// Led steps may be taken on the report of this host's own member alone, before the round is published. Publishing
	// first would delay the step too long, because it writes through the slow leader.
	Led bool
	// Always reports that neither a pause nor an unreadable record withholds the step.
	Always bool
	Doing  string // what the agent does, worded to follow "quorumd is "
}

// The numbers of calls, not counting the one that confirms the lock. A record is written in one call and the lock is
// taken in two. A membership change takes three, because the members are listed before and after it. etcd answers a
// change that it cannot commit only after 7 s. Steps do not wait for that answer, because the next round reads the
// outcome anyway.
const (
	quick  = 2
	member = 3
	// order allows one request to the root helper. The helper starts a process, which takes time when the CPU is busy.
	// The take-down of a readdress makes two, and is repeated if the second one is late.
	order = 3
	// orders allows two requests to the root helper, without the lock.
	orders = 4
)

// Steps returns all steps.
func Steps() []StepInfo {
	return []StepInfo{
		{Kind: StepTakeLock, Calls: quick, Doing: "taking the lock"},
		{Kind: StepReleaseLock, Calls: quick, Always: true, Doing: "releasing the lock"},
		{Kind: StepBeginJoin, Locked: true, Calls: quick, Doing: "recording the join"},
		{Kind: StepMoveDataAside, Locked: true, Calls: quick, Doing: "moving the old data directory aside"},
		{Kind: StepAddLearner, Locked: true, Calls: member, Doing: "adding this host to the cluster as a learner"},
		{Kind: StepWriteEnv, Drives: true, Calls: orders, Doing: "writing etcd's environment"},
		{Kind: StepStartUnit, Drives: true, Calls: orders, Guard: GuardCleared, Doing: "starting etcd"},
		{
			Kind: StepStopUnit, Drives: true, Calls: orders,
			Doing: "stopping etcd: its member is no longer in the cluster",
		},
		{Kind: StepPromote, Locked: true, Calls: member, Doing: "promoting the learner to voter"},
		{Kind: StepSetPhase, Locked: true, Calls: quick, Doing: "recording the operation's phase"},
		{Kind: StepRollBack, Locked: true, Calls: quick, Doing: "recording the rollback"},
		{
			Kind: StepRemoveLearner, Locked: true, Calls: member,
			Doing: "removing the abandoned learner",
		},
		{Kind: StepEndOp, Locked: true, Calls: quick, Doing: "ending the operation"},
		{Kind: StepFinishBootstrap, Calls: quick, Doing: "recording that the cluster exists"},
		{Kind: StepBeginCycle, Locked: true, Calls: quick, Doing: "recording that this host is taken down"},
		{Kind: StepRunHooks, Locked: true, Calls: order, Doing: "running the hooks"},
		{Kind: StepTransferLeadership, Locked: true, Calls: member, Doing: "transferring leadership"},
		{Kind: StepLeaderStepsDown, Calls: member, Led: true, Doing: "transferring leadership to a healthier voter"},
		{Kind: StepRestartUnit, Drives: true, Locked: true, Calls: order, Doing: "restarting etcd"},
		{Kind: StepTakeDown, Drives: true, Locked: true, Calls: order, Doing: "stopping etcd"},
		{Kind: StepReboot, Locked: true, Calls: quick, Doing: "rebooting the machine"},
		{Kind: StepRunCommand, Locked: true, Calls: order, Doing: "running the command"},
		{Kind: StepDefragment, Locked: true, Calls: quick, Doing: "defragmenting etcd's database"},
		{
			Kind: StepDeleteOld, Locked: true, Calls: order,
			Doing: "deleting etcd's database from before the defragmentation",
		},
		{
			Kind: StepRecordAgain, Locked: true, Calls: quick,
			Doing: "restoring the record of this host's operation",
		},
		{Kind: StepBeginRemoval, Locked: true, Calls: quick, Doing: "recording the removal of a member"},
		{Kind: StepRemoveMember, Locked: true, Calls: member, Doing: "removing a member for good"},
		{
			Kind: StepBeginReplace, Locked: true, Calls: quick,
			Doing: "recording that this host replaces a voter",
		},
		{Kind: StepBeginLeave, Locked: true, Calls: quick, Doing: "recording that this host's voter leaves the " +
			"cluster"},
		{Kind: StepUpdateMember, Locked: true, Calls: member, Doing: "registering this member's peer URL"},
		{Kind: StepClaimPermit, Calls: quick, Doing: "claiming the permit to free space"},
		{Kind: StepWritePermits, Calls: quick, Doing: "writing the permits to free space after a NOSPACE alarm"},
		{Kind: StepCompact, Calls: member, Doing: "compacting the history of the keys"},
		{
			Kind: StepLeadElsewhere, Calls: member,
			Doing: "transferring leadership, so that the leader's database can be defragmented",
		},
		{Kind: StepDefragmentOnline, Calls: quick, Doing: "starting to defragment the database of a member online"},
		{Kind: StepDisarmNoSpace, Calls: orders, Doing: "disarming the NOSPACE alarm"},
		{Kind: StepEnableDowngrade, Locked: true, Calls: member, Doing: "enabling etcd's downgrade job"},
		{Kind: StepCancelDowngrade, Locked: true, Calls: member, Doing: "cancelling etcd's downgrade job"},
		{
			Kind: StepStopForRecovery, Drives: true, Calls: orders, Guard: GuardSet,
			Doing: "stopping etcd for the recovery",
		},
		{Kind: StepCopyData, Calls: quick, Guard: GuardSet, Doing: "starting to build the data of the new cluster"},
		{Kind: StepPlaceCopy, Calls: orders, Doing: "moving the old data aside and the copy into place"},
		{Kind: StepLayAside, Calls: orders, Guard: GuardSet, Doing: "moving the old data aside for the recovery"},
		{Kind: StepEndRecovery, Calls: orders, Doing: "ending the recovery on this host"},
	}
}

// Info returns the declaration of a kind of step.
func (k StepKind) Info() StepInfo {
	if info, known := stepsByKind[k]; known {
		return info
	}
	return StepInfo{Kind: k}
}

// stepsByKind is never changed.
var stepsByKind = func() map[StepKind]StepInfo {
	all := map[StepKind]StepInfo{}
	for _, info := range Steps() {
		all[info.Kind] = info
	}
	return all
}()

// Step is a step with its parameters.
type Step struct {
	Kind   StepKind
	Target Role    // begin-join, begin-replace: the role to reach
	Phase  OpPhase // set-phase
	// promote, remove-learner: the learner; roll-back: the learner, or the member whose removal is called off;
	// transfer-leadership, step-down, lead-elsewhere: the next leader; begin-removal, remove-member, begin-replace,
	// begin-leave: the member to remove; defragment-online: the member to defragment; set-phase: the member in the
	// operation's record; update-member: this host's own member
	MemberID uint64
	PeerURL  string     // update-member: the peer URL to register
	Guard    StartGuard // how the start guard changes before the step begins
	WriteEnv bool       // take-down: the environment of the next start is written before etcd is stopped
	Revision int64      // compact: the oldest revision to keep
	Version  string     // enable-downgrade: the minor version to lower the cluster version to, such as "3.6"
	Outcome  ReasonCode
	Why      string // for logs and the history
}

// String returns the step for a log or the history.
func (s Step) String() string {
	if s.Why == "" {
		return string(s.Kind)
	}
	return fmt.Sprintf("%s (%s)", s.Kind, s.Why)
}

// Text describes what the step does.
func (s Step) Text() string {
	text, target := s.Kind.Info().Doing, s.Target
	switch {
	case s.Kind == StepBeginReplace && s.Target == "":
		text = "recording the removal of a surplus voter"
	case s.Kind == StepBeginReplace && s.Target == RoleSpare:
		text, target = "recording the removal of this host's own member", ""
	}
	if s.Phase != "" {
		text += ": " + string(s.Phase)
	}
	if target != "" {
		text += " as " + string(target)
	}
	if s.Why != "" {
		text += ": " + s.Why
	}
	return text
}

// Progress is a number that rises or falls to a goal, such as bytes done by a job. Two readings show the remaining
// time.
type Progress struct {
	Now  float64   `json:"now"`
	Goal float64   `json:"goal"` // the goal may change until it is known exactly
	Unit CountUnit `json:"unit"` // entries, seconds, writes, samples or bytes
}

// CountUnit is the unit of a Progress.
type CountUnit string

// The units.
const (
	CountEntries CountUnit = "entries" // entries of the raft log by which this host's member is behind the leader
	CountSeconds CountUnit = "seconds" // seconds for which the member has met the condition without a break
	CountWrites  CountUnit = "writes"  // writes measured in a qualifying run
	CountSamples CountUnit = "samples"
	CountBytes   CountUnit = "bytes"
)

// ProgressOf returns the progress of the wait that a reason of this host describes; false if it cannot be counted. It
// is for display only.
func ProgressOf(v View, code ReasonCode) (Progress, bool) {
	m, listed := v.member()
	if !listed || !m.Live {
		return Progress{}, false
	}
	behind := Progress{float64(m.Lag), float64(v.Limits.PromoteLag), CountEntries}
	switch code {
	case LearnerBehind:
		return behind, m.LagKnown
	case LearnerNotSteady:
		longer, caughtUp := secondsWait(m.LiveFor, v.Limits.PromoteStable), secondsWait(m.SteadyFor, v.Limits.SteadyLag)
		if longer.Goal-longer.Now < caughtUp.Goal-caughtUp.Now {
			longer = caughtUp
		}
		return longer, longer.Now < longer.Goal
	case Returning:
		switch {
		case m.Errors:
			return Progress{}, false
		case !steady(v, m):
			return behind, m.LagKnown
		}
		served := secondsWait(min(m.LiveFor, m.SteadyFor), v.Limits.ReturnStable)
		return served, served.Now < served.Goal
	}
	return Progress{}, false
}

func secondsWait(elapsed, goal time.Duration) Progress {
	return Progress{elapsed.Seconds(), goal.Seconds(), CountSeconds}
}
