// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"slices"
	"time"

	"github.com/quorumd/quorumd/health"
)

// Asked is what was asked of this host: to be taken down, and brought back. It lies on the host's own
// disk, so that it is known there while no etcd answers.
type Asked struct {
	Work       Work
	By, Reason string

	// Program is the name of the one that WorkCommand runs, and Command how it is doing.
	Program string
	Command Hooks

	KeepRunning bool // only the turn is wanted, etcd goes on
	External    bool // somebody else reboots the machine
	Hurried     bool // within seconds, whatever is decided here: only what is about safety keeps it from its turn
	Over        bool // nothing more is to be taken down for it
	// OverFor is since when that has been so, as this agent has seen it; 0 while it is not.
	OverFor  time.Duration
	Ended    bool   // a person has said that it is over, or its operation is about to be ended
	TooLate  bool   // somebody else was to reboot the machine, and has, before its turn had come
	Seen     bool   // its operation was seen in etcd
	Unbegun  bool   // its operation has not begun
	Rollout  string // the one that has asked for it; empty when none has
	Overdue  bool   // it has lasted longer than was said; that is told, and changes nothing
	Retimed  bool   // the record of its operation names another end
	Stopped  bool   // this agent has stopped etcd for it, and has not started it since
	Released bool   // a person has released its operation: it takes no turn any more
	// its operation stands by this host's disk, and etcd shows none, or another's: somebody has deleted its record
	Noted    bool
	Rebooted bool // the machine has rebooted since its operation began
	// RebootFor is since when this agent has asked for a reboot; Never when it has not.
	RebootFor time.Duration
	WaitedFor time.Duration // since this agent has known of it
	Before    Hooks
	After     Hooks
	Waived    bool // a person has said that it is over although the hooks have failed that run after it
}

// Hooks is how the operator's own programs are doing that run before etcd is stopped, after it is back, or,
// a single one, while it is down.
type Hooks struct {
	State HookState
	Text  string // for people
	// Launched tells that this agent has had them started so short a time ago that it would change nothing to do so
	// again.
	Launched bool
}

// Ended tells whether they have come to an end, well or not.
func (h Hooks) Ended() bool { return h.State == HooksDone || h.State == HooksFailed }

// HookTime says which hooks of a host's own operation are run.
type HookTime uint8

// The times of hooks.
const (
	HooksNever HookTime = iota
	HooksBefore
	HooksAfter
)

// HooksIn gives which are run in a phase of its operation.
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

// cycle begins the operation that this host was asked for, if nothing is against it. Whatever else the
// host has to do meanwhile for its member, it does.
func cycle(v View) (Decision, bool) {
	if v.Asked == nil || v.Asked.Released || v.Op != nil && v.Op.Host == v.Self.ID || !v.Cluster.Reachable ||
		v.foreign() {
		return Decision{}, false
	}
	if v.Asked.Noted {
		return recordAgain(v), true
	}
	if v.Asked.Over || halted(v) {
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
	after, behind := again(v, reasons[0].Code)
	return Decision{Reasons: reasons, Again: after, Behind: behind}, true
}

// cycleVetoes declares what keeps a host from being taken down, in the order in which they are named.
func cycleVetoes() []veto {
	return []veto{
		vetoHostConflict(),
		vetoCorrupt(),
		vetoMemberUnitUnusable(),
		vetoMemberLost(),
		vetoRestartOfStopped(),
		vetoStrangerRuns(),
		vetoOperationInFlight(),
		vetoLockHeld(),
		vetoCommonCause(),
		vetoQuorumAtRisk(),
		vetoLearnerUnsettled(),
		vetoNotSettled(),
		vetoCycleQueued(),
	}
}

// restartOfStopped keeps a restart, or what a command ends with, from starting an etcd that somebody has stopped, and
// may work on.
func restartOfStopped(v View) (string, bool) {
	_, listed := v.member()
	if !listed || !v.Asked.Work.info().alone || v.Asked.Stopped || v.Unit.State != UnitInactive {
		return "", false
	}
	if v.Asked.Work.RunsProgram() {
		return "etcd was stopped cleanly; the command runs once etcd is started again", true
	}
	return "etcd was stopped cleanly; the restart waits until it is started again", true
}

// strangerRuns keeps a command from being run beside an etcd that is no member of this host's which could be stopped in
// order: a learner that has never started, and is to be taken out, or one of another cluster.
func strangerRuns(v View) (string, bool) {
	m, listed := v.member()
	if !v.Asked.Work.RunsProgram() || !unitRuns(v) || listed && !neverStarted(m) {
		return "", false
	}
	return "etcd is " + string(v.Unit.State) + " here, and is not a member that could be stopped cleanly", true
}

// neverStarted tells whether a member is a learner that has not served yet. It is none that counts.
func neverStarted(m Member) bool { return m.Learner && m.Name == "" }

func memberUnitUnusable(v View) (string, bool) {
	_, listed := v.member()
	switch {
	case !listed || v.Asked.KeepRunning:
		return "", false
	case v.othersStop() && v.Unit.State != UnitUnknown:
		return "", false
	}
	return unitUnusable(v)
}

// quorumAtRisk tells whether stopping this voter would put quorum at risk. It asks nothing of this host's own
// member, which may be the broken one.
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
		if doubt := v.doubt(other, health.Maintenance); doubt != "" {
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

// doubt says why a voter is not known to be live, and healthy enough for what its findings may gate; empty when it is.
func (v View) doubt(m Member, to health.Gate) string {
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
	case h.Health != health.Warm && gates(h.Health, h.Spares, to):
		return "is " + h.Health.String()
	}
	return ""
}

// learnerUnsettled tells whether a learner has not started, or is being filled: the leader sends it all it has. One
// that is caught up, or that is dead, is in nobody's way; nor is one that has never started and that has come since
// this host's operation began: it belongs to no join, and only goes when that has ended. This host's own that has not
// started is taken out before the host is taken down, or its etcd would run beside whoever works there.
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

// notSettled tells whether it is too soon after what happened before. That is a pace, and none for a machine that does
// not wait: it would go down all the same, and with its leadership.
func notSettled(v View) (string, bool) {
	if v.Asked != nil && v.Asked.Hurried {
		return "", false
	}
	return settling(v)
}

// cycleQueued tells whether another host that was asked earlier goes first.
func cycleQueued(v View) (string, bool) {
	if v.Asked.Hurried {
		return "", false
	}
	if v.Resting && !v.Looked {
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

// queued gives the hosts that wait to be taken down, in the order in which they were asked.
func queued(v View) []Host {
	line := slices.DeleteFunc(slices.Clone(v.Hosts), func(h Host) bool { return h.Wants == "" || !h.Manage })
	slices.SortStableFunc(line, askedEarlier)
	return line
}

// again says when a host that waits to be taken down looks again before its next round of the loop, and the IDs of the
// hosts that it then looks at beside itself. Only the next in the line does, so that it follows within a second: it is
// the first, or the one before it has its turn or has just had it, and has perhaps not told yet that it wants no other.
// It knows when a pause ends.
func again(v View, code ReasonCode) (after time.Duration, behind []string) {
	line := queued(v)
	own := slices.IndexFunc(line, func(h Host) bool { return h.ID == v.Self.ID })
	before, turn := turnElsewhere(v)
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

// lookSoon is how often the next in the line looks whether the one before has come back, and a host whether programs
// that were started have begun.
const lookSoon = 500 * time.Millisecond
