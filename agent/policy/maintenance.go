// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"slices"
	"time"

	"github.com/quorumd/quorumd/health"
)

// Work is the purpose for which a host is taken down.
type Work string

// The kinds of work.
const (
	WorkMaintenance Work = "maintenance" // an operator works on the host, and ends the maintenance
	WorkRestart     Work = "restart"     // the etcd unit is restarted
	WorkReboot      Work = "reboot"      // the machine is rebooted
	WorkCommand     Work = "command"     // an operator's program runs on the host while etcd is down
	WorkReaddress   Work = "readdress"   // the configured peer and client URLs replace the registered ones
	WorkDefrag      Work = "defrag"      // etcd's database is compacted while etcd is down
)

// work declares a kind of work. To add a kind, declare it in workKinds, and handle it in takeDown, safeToTouch,
// workDone, transferLeadership and stoppedByOperator.
type work struct {
	kind Work
	// operatorEnds reports that an operator ends the work, unless the agent calls it off, and that operators may work
	// on the machine until then. During this work the start guard keeps etcd stopped at a boot.
	operatorEnds bool
	// rebootEnds reports that a reboot of the machine ends the work.
	rebootEnds bool
	// outlastsReboot reports that the machine may go down during the work.
	outlastsReboot bool
	// automatic reports that the agent does all of the work. Such work ends with its operation, which starts etcd
	// again. Therefore it does not begin on a host on which an operator has stopped etcd and may be working.
	automatic bool
	// program reports that the work consists of running the program named in the request.
	program bool
	// job reports that the work runs a program of the operator or of quorumd while etcd is down: etcd does not start
	// until it has ended, and its failure is the outcome of the operation.
	job bool
	// needsMember reports that the work does nothing on a host without a member.
	needsMember bool
	// rolls reports that a rollout may request the work.
	rolls bool
}

func workKinds() [6]work {
	return [...]work{
		{kind: WorkMaintenance, operatorEnds: true, outlastsReboot: true},
		{kind: WorkRestart, automatic: true, needsMember: true, rolls: true},
		{kind: WorkReboot, rebootEnds: true, outlastsReboot: true, rolls: true},
		{kind: WorkCommand, automatic: true, program: true, job: true, rolls: true},
		{kind: WorkReaddress, automatic: true, needsMember: true, rolls: true},
		{kind: WorkDefrag, automatic: true, job: true, needsMember: true, rolls: true},
	}
}

// info returns the declaration of the work; for unknown work, a declaration without any property.
func (w Work) info() work {
	for _, info := range workKinds() {
		if info.kind == w {
			return info
		}
	}
	return work{kind: w}
}

// Works returns all kinds of work.
func Works() []Work {
	all := workKinds()
	out := make([]Work, len(all))
	for i, info := range all {
		out[i] = info.kind
	}
	return out
}

// RunsProgram reports whether the work is the program named in the request.
func (w Work) RunsProgram() bool { return w.info().program }

// RunsJob reports whether the work runs a program of the operator or of quorumd while etcd is down.
func (w Work) RunsJob() bool { return w.info().job }

// NeedsMember reports whether the work does nothing on a host without a member.
func (w Work) NeedsMember() bool { return w.info().needsMember }

// over reports whether the work is done because an operator has ended it or, if a reboot ends it, because the machine
// has rebooted.
func (w Work) over(ended, rebooted bool) bool { return ended || w.info().rebootEnds && rebooted }

// Asked is this host's request to be taken down and brought back. It is stored on the host's own disk, so that the
// agent can read it while etcd does not answer.
type Asked struct {
	Request

	Command Hooks // the state of the program that runs while etcd is down: see Work.RunsJob
	Over    bool  // the host no longer needs to be down
	// OverFor is how long this agent has observed Over; 0 while Over is false.
	OverFor       time.Duration
	Rollout       string // the rollout that made the request; empty if none
	Overdue       bool   // the work has exceeded its announced duration; the agent only reports that
	RecordDiffers bool   // the operation's record and the request differ in the end time or in Interruptible
	Released      bool   // an operator has released the request's operation: it does not begin again
	// RecordDeleted reports that the record of the request's operation was deleted: this host's disk records the
	// operation, but etcd has no record, or the record of another host's operation.
	RecordDeleted bool
	// RebootFor is the time since this agent last requested a reboot; Never if it has not.
	RebootFor time.Duration
	WaitedFor time.Duration // time since this agent first observed the request
	Before    Hooks
	After     Hooks
}

// Hooks is the state of programs: the hooks that run before etcd is stopped or after it is back, or the one program of
// a command or a defragmentation, which runs while etcd is down.
type Hooks struct {
	State HookState
	Text  string // for display
	// Launched reports that this agent started the programs so recently that starting them again would change nothing.
	Launched bool
}

// Ended reports whether the programs have ended, successfully or not.
func (h Hooks) Ended() bool { return h.State == HooksDone || h.State == HooksFailed }

// HookTime is the time at which hooks run in a host's own operation.
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
	case PhaseBack, PhaseVerify:
		return HooksAfter
	}
	return HooksNever
}

// HookState is the state of hooks, or of the program of a command or a defragmentation.
type HookState string

// The states. The zero value means that there are no programs.
const (
	HooksNone     HookState = ""
	HooksDue      HookState = "due"
	HooksStarting HookState = "starting" // a program was launched, and may begin at any moment
	HooksRunning  HookState = "running"
	HooksDone     HookState = "done"
	HooksFailed   HookState = "failed"
)

// cycle begins the requested operation, unless a veto applies. While the request waits, the host takes all other steps
// that its member needs.
func cycle(v View) (Decision, bool) {
	if v.Asked == nil || v.Asked.Released || v.Op != nil && v.Op.Host == v.Self.ID || !v.Cluster.Reachable ||
		v.foreign() {
		return Decision{}, false
	}
	if v.Asked.RecordDeleted {
		return recordAgain(v), true
	}
	if v.Asked.Over || halted(v) || withdrawn(v) {
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
		vetoPeerTLSMissing(),
		vetoLowersLimit(),
		vetoOperationInFlight(),
		vetoLockHeld(),
		vetoCommonCause(),
		vetoUpgradeHeld(),
		vetoQuorumAtRisk(),
		vetoLearnerUnsettled(),
		vetoNotSettled(),
		vetoDowngradeAwaited(),
		vetoCycleQueued(),
	}
}

// restartOfStopped keeps work that the agent does by itself, such as a restart, from starting an etcd that an operator
// has stopped, because the operator may be working on the host.
func restartOfStopped(v View) (string, bool) {
	_, listed := v.member()
	if !listed || !v.Asked.Work.info().automatic || v.Asked.Stopped || v.Unit.State != UnitInactive {
		return "", false
	}
	what := string(v.Asked.Work)
	if v.Asked.Work == WorkDefrag {
		what = "defragmentation"
	}
	return "etcd was stopped cleanly; the " + what + " begins once etcd is started again", true
}

// nonMemberEtcdRuns keeps a job, such as a command, from running next to an etcd that cannot be stopped cleanly as this
// host's member: a learner that has never started and will be removed, or an etcd of another cluster.
func nonMemberEtcdRuns(v View) (string, bool) {
	m, listed := v.member()
	if !v.Asked.Work.RunsJob() || !unitRuns(v) || listed && !neverStarted(m) {
		return "", false
	}
	return "etcd is " + string(v.Unit.State) + " here, but does not run a member that can be stopped cleanly", true
}

// neverStarted reports whether a member is a learner that has never served. Its host counts as a host without a member.
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

// quorumAtRisk reports whether stopping this voter would put quorum at risk. This host's own member is not checked,
// because it may be the broken one.
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

// notProven returns why a voter is not known to be live, without errors and in a health state that does not block the
// given gate; empty if it is. WARM does not count as blocking.
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

// learnerUnsettled reports whether a learner has not started, or is catching up and so puts load on the leader. A
// learner that has started does not matter if it is caught up, dead, permanent or this host's own. Neither does a
// learner that appears during this host's operation without ever having started: it belongs to no join, and is removed
// after the operation. This host's own learner that never started is removed before the host is taken down; otherwise
// its etcd could run during the work.
func learnerUnsettled(v View) (string, bool) {
	own := v.Op != nil && v.Op.Host == v.Self.ID
	for m := range v.Cluster.learners() {
		switch {
		case m.Name == "" && own:
		case m.Name == "":
			return "learner " + m.label() + " has not started yet", true
		case m.PeerURL == v.Self.PeerURL, m.Permanent: // a permanent learner at a distant site may never catch up
		case m.Live && m.LagKnown && m.Lag > v.Limits.PromoteLag:
			return "learner " + m.label() + " has not caught up", true
		}
	}
	return "", false
}

// notSettled reports whether the last change is too recent. This only limits the pace of changes. It does not delay the
// operation of a machine that goes down anyway: if its member leads, leadership must be transferred first.
func notSettled(v View) (string, bool) {
	if v.Asked != nil && v.Asked.Hurried {
		return "", false
	}
	return settling(v)
}

// cycleQueued reports whether this host lets another host with an older request go first.
func cycleQueued(v View) (string, bool) {
	if v.Asked.Hurried {
		return "", false
	}
	if v.Resting && !v.HostsFresh {
		return "other hosts go first", true
	}
	line := queued(v)
	position := slices.IndexFunc(line, func(h Host) bool { return h.ID == v.Self.ID })
	if position < 0 { // this host's request is not published yet
		position = len(line)
	}
	if position == 0 || min(v.IdleFor, v.Asked.WaitedFor) >= patience(v, position) {
		return "", false
	}
	return line[0].Name + " has an older request and goes first", true
}

// queued returns the hosts with requests to be taken down, oldest request first.
func queued(v View) []Host {
	line := slices.DeleteFunc(slices.Clone(v.Hosts), func(h Host) bool { return h.Wants == "" || !h.Manage })
	slices.SortStableFunc(line, askedEarlier)
	return line
}

// lookAgain returns how soon a host that waits to be taken down observes the cluster again, if before its next round,
// and the IDs of the hosts whose records it reads then. Only the next host in the queue observes earlier, so that its
// operation begins within a second after the previous one ends. The next host is the first in the queue, or the second
// while the first is in its operation, or while no operation is in flight: the first may have just ended its own
// without having published that. While the membership settles, the next host observes when the settle time ends.
func lookAgain(v View, code ReasonCode) (after time.Duration, behind []string) {
	line := queued(v)
	own := slices.IndexFunc(line, func(h Host) bool { return h.ID == v.Self.ID })
	before, unrecorded := unrecordedOperation(v)
	switch {
	case own == 0 && unrecorded:
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

// lookSoon is how soon a host observes again while it awaits a change that is due, such as the end of the previous
// host's operation, the start of its programs, or a report.
const lookSoon = 500 * time.Millisecond

// Program holds the observations from which the state of a command's program is derived. The agent fills it from this
// host's disk and from the process that runs programs, and the model from its simulated state.
type Program struct {
	Name string
	// Recorded is the state on this host's disk: running once the program was started, later done or failed; empty
	// before.
	Recorded     HookState
	RecordedText string
	OtherBoot    bool // the program was started in an earlier boot of the machine
	CanRun       bool // this agent can run programs
	Begun        bool // the operation that runs the program has begun
	// Observed is the observed state: HooksDue if the program has reported nothing. Unobserved is why the program could
	// not be observed.
	Observed      Hooks
	Unobserved    string
	StartTimedOut bool // the time limit for its start has passed
	TimedOut      bool // the time limit for its end has passed: if it ran, it was killed
	Launched      bool // this agent started the program so recently that starting it again would change nothing
}

// KnownState returns the program's state if it is known without an observation, and whether it is. A host whose
// operation has not begun does not observe the program: the disk with the program may hang, and would block the control
// loop.
func (p Program) KnownState() (Hooks, bool) {
	started := p.Recorded == HooksRunning
	switch {
	case p.Recorded == HooksDone || p.Recorded == HooksFailed:
		return Hooks{State: p.Recorded, Text: p.RecordedText}, true
	case started && p.OtherBoot:
		return p.failed("the machine rebooted after the program was started, so its outcome is unknown: check what " +
			"it did; it is not run again"), true
	case !p.CanRun:
		return p.failed("this agent cannot run it"), true
	case !p.Begun && !started:
		return Hooks{State: HooksDue, Text: p.Name}, true
	}
	return Hooks{}, false
}

// State returns the program's state. A started program counts as running until its end is known or its time limit has
// passed, because etcd must not start while the program runs, and the program must not run twice.
func (p Program) State() Hooks {
	if settled, known := p.KnownState(); known {
		return settled
	}
	started := p.Recorded == HooksRunning
	switch {
	case p.Unobserved != "" && started && p.TimedOut:
		return p.failed("it timed out, and its outcome is unknown: " + p.Unobserved)
	case p.Unobserved != "" && started: // the program may be running
		return Hooks{State: HooksRunning, Text: p.Name + ": " + p.Unobserved}
	case p.Unobserved != "":
		return Hooks{State: HooksDue, Text: p.Name + ": " + p.Unobserved}
	case p.Observed.State == HooksDue && started && p.StartTimedOut:
		return p.failed("it was launched, but has not started: see \"journalctl -u 'quorumd*'\"")
	case p.Observed.State == HooksDue && started:
		return Hooks{State: HooksStarting, Text: p.Name + ": it is being started", Launched: p.Launched}
	case p.Observed.State == HooksRunning:
		return Hooks{State: HooksRunning, Text: p.Name + " runs"}
	}
	return p.Observed
}

func (p Program) failed(text string) Hooks {
	return Hooks{State: HooksFailed, Text: p.Name + ": " + text}
}
