// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"slices"
	"time"

	"github.com/quorumd/quorumd/health"
)

// Asked is this host's request: to be taken down and brought back. It is stored on the host's own disk, so that it is
// known there while no etcd answers.
type Asked struct {
	Work       Work
	By, Reason string

	// Program is the name of the program that WorkCommand runs, and Command its state.
	Program string
	Command Hooks

	KeepRunning bool // only the permission is wanted, etcd keeps running
	External    bool // something else reboots the machine
	Hurried     bool // it goes down within seconds in any case: only safety delays its operation
	Done        bool // it no longer needs to be taken down
	// OverFor is since when that has been so, as observed by this agent; 0 while it is not.
	DoneFor  time.Duration
	Ended    bool   // an operator has ended it, or its operation is about to end
	TooLate  bool   // something else was to reboot the machine, and did so before the operation began
	Seen     bool   // its operation was seen in etcd
	NotBegun  bool   // its operation has not begun
	Rollout  string // the rollout that requested it; empty if none
	Overdue  bool   // it has exceeded its announced duration; that is only reported
	EndChanged  bool   // the record of its operation names another end
	Stopped  bool   // this agent has stopped etcd for it, and has not started it since
	Released bool   // an operator has released its operation: it does not begin again
	// its operation is in flight by this host's disk, but etcd has no record of it, or another host's: the record was
	// deleted
	RecordDeleted    bool
	Rebooted bool // the machine has rebooted since its operation began
	// RebootFor is since when this agent has requested a reboot; Never if it has not.
	RebootFor time.Duration
	WaitedFor time.Duration // since this agent has known of it
	Before    Hooks
	After     Hooks
	Waived    bool // an operator ended it although the hooks that run after it failed
}

// Hooks is the state of the operator's programs that run before etcd is stopped, after it is back, or, a single one,
// while it is down.
type Hooks struct {
	State HookState
	Text  string // for people
	// Launched reports that this agent started them so recently that starting them again would change nothing.
	Launched bool
}

// Ended reports whether they have ended, successfully or not.
func (h Hooks) Ended() bool { return h.State == HooksDone || h.State == HooksFailed }

// HookTime is when hooks of a host's own operation run.
type HookTime uint8

// The times of hooks.
const (
	HooksNever HookTime = iota
	HooksBefore
	HooksAfter
)

// HooksIn returns which hooks run in a phase of the operation.
func HooksIn(phase OpPhase) HookTime {
	switch phase {
	case PhaseBegun:
		return HooksBefore
	case PhaseBack:
		return HooksAfter
	}
	return HooksNever
}

// HookState is the state of the hooks.
type HookState string

// The states of the hooks. The zero value means that there are none.
const (
	HooksNone     HookState = ""
	HooksDue      HookState = "due"
	HooksStarting HookState = "starting" // a command that was started, and may begin at any moment
	HooksRunning  HookState = "running"
	HooksDone     HookState = "done"
	HooksFailed   HookState = "failed"
)

// cycle begins the requested operation, unless a veto applies. Meanwhile the host does whatever else its member
// needs.
func cycle(v View) (Decision, bool) {
	if v.Asked == nil || v.Asked.Released || v.Op != nil && v.Op.Host == v.Self.ID || !v.Cluster.Reachable ||
		v.foreign() {
		return Decision{}, false
	}
	if v.Asked.RecordDeleted {
		return recordAgain(v), true
	}
	if v.Asked.Done || halted(v) {
		return Decision{}, false
	}
	reasons := against(v, cycleVetoes())
	switch {
	case len(reasons) == 0 && v.Lock.Mine:
		return do(Step{Kind: StepBeginCycle, Why: string(v.Asked.Work) + ": " + v.Asked.Reason}), true
	case len(reasons) == 0:
		return do(Step{Kind: StepTakeLock, Why: "to be taken down for " + string(v.Asked.Work)}), true
	}
	for _, part := range []func(View) (Decision, bool){othersOperation, ownUnit, leftover} {
		if d, decided := part(v); decided && d.Step.Kind != StepNone {
			d.Reasons = append(d.Reasons, reasons...)
			return d, true
		}
	}
	if v.Lock.Mine && v.Op == nil {
		return do(Step{Kind: StepReleaseLock, Why: reasons[0].Text}), true
	}
	after, behind := lookAgain(v, reasons[0].Code)
	return Decision{Reasons: reasons, Again: after, Behind: behind}, true
}

// cycleVetoes returns the conditions that keep a host from being taken down, in order of precedence.
func cycleVetoes() []veto {
	return []veto{
		vetoHostConflict(),
		vetoCorrupt(),
		vetoMemberUnitUnusable(),
		vetoMemberLost(),
		vetoRestartOfStopped(),
		vetoNonMemberEtcdRuns(),
		vetoOperationInFlight(),
		vetoLockHeld(),
		vetoCommonCause(),
		vetoQuorumAtRisk(),
		vetoLearnerUnsettled(),
		vetoNotSettled(),
		vetoCycleQueued(),
	}
}

// restartOfStopped keeps a restart, or the end of a command, from starting an etcd that an operator has stopped and may
// be working on.
func restartOfStopped(v View) (string, bool) {
	_, listed := v.member()
	if !listed || !v.Asked.Work.info().automatic || v.Asked.Stopped || v.Unit.State != UnitInactive {
		return "", false
	}
	if v.Asked.Work.RunsProgram() {
		return "etcd was stopped cleanly; the command runs once etcd is started again", true
	}
	return "etcd was stopped cleanly; the restart waits until it is started again", true
}

// strangerRuns keeps a command from running next to an etcd that cannot be stopped cleanly as this host's member: a
// learner that has never started and will be removed, or an etcd of another cluster.
func nonMemberEtcdRuns(v View) (string, bool) {
	m, listed := v.member()
	if !v.Asked.Work.RunsProgram() || !unitRuns(v) || listed && !neverStarted(m) {
		return "", false
	}
	return "etcd is " + string(v.Unit.State) + " here, and is not a member that could be stopped cleanly", true
}

// neverStarted reports whether a member is a learner that has never served. Such a learner does not count.
func neverStarted(m Member) bool { return m.Learner && m.Name == "" }

func memberUnitUnusable(v View) (string, bool) {
	_, listed := v.member()
	switch {
	case !listed || v.Asked.KeepRunning:
		return "", false
	case v.mayStopExternally() && v.Unit.State != UnitUnknown:
		return "", false
	}
	return unitUnusable(v)
}

// quorumAtRisk reports whether stopping this voter would put quorum at risk. This host's own member may be the broken
// one and is not checked.
func quorumAtRisk(v View) (string, bool) {
	m, listed := v.member()
	if !listed || m.Learner || (v.Asked != nil && v.Asked.KeepRunning) {
		return "", false
	}
	voters, proven := 0, 0
	why := ""
	for other := range v.Cluster.voters() {
		voters++
		if other.ID == m.ID {
			continue
		}
		if doubt := v.notProven(other, health.Maintenance); doubt != "" {
			why = "voter " + other.label() + " " + doubt
			continue
		}
		proven++
	}
	if mayStop(voters, proven) {
		return "", false
	}
	if why == "" {
		why = spareText(voters)
	}
	return why, true
}

// doubt explains why a voter is not known to be live and healthy enough for what its findings may block; empty if it
// is.
func (v View) notProven(m Member, to health.Gate) string {
	if !m.Live {
		return "does not answer a linearizable read"
	}
	if m.Errors {
		return "reports errors"
	}
	h, present := v.hostOf(m)
	switch {
	case !present:
		return "has no quorumd that reports its health state"
	case h.Health != health.Warm && blocks(h.Health, h.Ungated, to):
		return "is " + h.Health.String()
	}
	return ""
}

// learnerUnsettled reports whether a learner has not started, or is catching up: the leader sends it everything. A
// learner that is caught up or dead does not matter; nor does one that never started and was added after this host's
// operation began: it belongs to no join, and is removed once that operation has ended. This host's own learner that
// never started is removed before the host is taken down, or its etcd would run during the work.
func learnerUnsettled(v View) (string, bool) {
	own := v.Op != nil && v.Op.Host == v.Self.ID
	for m := range v.Cluster.learners() {
		switch {
		case m.Name == "" && own:
		case m.Name == "":
			return "learner " + m.label() + " has not started yet", true
		case m.PeerURL == v.Self.PeerURL:
		case m.Live && m.LagKnown && m.Lag > v.Limits.PromoteLag:
			return "learner " + m.label() + " has not caught up", true
		}
	}
	return "", false
}

// notSettled reports whether it is too soon after the last change. This only sets the pace and does not bind a machine
// that goes down anyway, with its leadership.
func notSettled(v View) (string, bool) {
	if v.Asked != nil && v.Asked.Hurried {
		return "", false
	}
	return settling(v)
}

// cycleQueued reports whether another host has an older request.
func cycleQueued(v View) (string, bool) {
	if v.Asked.Hurried {
		return "", false
	}
	if v.Resting && !v.HostsFresh {
		return "other hosts go first", true
	}
	line := queued(v)
	position := slices.IndexFunc(line, func(h Host) bool { return h.ID == v.Self.ID })
	if position < 0 { // not published yet
		position = len(line)
	}
	if position == 0 || min(v.IdleFor, v.Asked.WaitedFor) >= patience(v, position) {
		return "", false
	}
	return line[0].Name + " has an older request and goes first", true
}

// queued returns the hosts that wait to be taken down, oldest request first.
func queued(v View) []Host {
	line := slices.DeleteFunc(slices.Clone(v.Hosts), func(h Host) bool { return h.Wants == "" || !h.Manage })
	slices.SortStableFunc(line, askedEarlier)
	return line
}

// again returns when a host that waits to be taken down looks again before its next round, and the IDs of the other
// hosts that it reads then. Only the next one in the queue does, so that it follows within a second: it is the first,
// or the one before it is in its operation or has just ended it and may not have published that yet. It knows when a
// pause ends.
func lookAgain(v View, code ReasonCode) (after time.Duration, behind []string) {
	line := queued(v)
	own := slices.IndexFunc(line, func(h Host) bool { return h.ID == v.Self.ID })
	before, turn := unrecordedOperation(v)
	switch {
	case own == 0 && turn:
		behind = []string{before.ID}
	case own == 1 && (v.Op == nil || v.Op.Host == line[0].ID):
		behind = []string{line[0].ID}
	case own != 0:
		return 0, nil
	case v.Op != nil:
		behind = []string{v.Op.Host}
	}
	switch {
	case code == OperationInFlight, code == LockHeld:
		return lookSoon, behind
	case code == Settling:
		return max(settlingFor(v), lookSoon/10), behind
	case code == CycleQueued && !v.Resting:
		return lookSoon / 2, behind
	}
	return 0, nil
}

// lookSoon is how often the next host in the queue checks whether the one before has come back, and a host whether
// started programs have begun.
const lookSoon = 500 * time.Millisecond
