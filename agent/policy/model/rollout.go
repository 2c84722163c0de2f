// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package model

import (
	"fmt"
	"strings"

	"github.com/quorumd/quorumd/agent/policy"
)

// Rollouts are explored separately, over worlds in which no host joins or leaves. A world tracks the rollout's record,
// the queue, and each host's record of its request on disk. The record on disk is written separately from the steps,
// and a crash can prevent the write. The real policy makes the agents' decisions, and decides how the end of a host's
// operation changes the rollout.

// Rollout is a scope: a rollout takes down three voters, and perhaps a spare, for the same work.
type Rollout struct {
	Name            string
	Spares          int // at most one; unless it may have to act, it reads only the records
	Work            policy.Work
	Upgrade         bool // the rollout upgrades to the next minor version, and pauses before the last member
	OperatorActions int  // the maximum number of operators' actions: pause, resume, abort, cancel a host, release
	Budget          int  // the maximum number of faults in a trace
}

// Rollouts returns the scopes that every test run explores.
func Rollouts() []Rollout {
	return []Rollout{
		{Name: "a rollout of restarts", Work: policy.WorkRestart},
		{Name: "a rollout of restarts, two operator commands", Work: policy.WorkRestart, OperatorActions: 2},
		{Name: "a rollout of restarts, a fault", Work: policy.WorkRestart, Budget: 1},
		{
			Name: "a rollout of reboots with a spare, one operator command", Work: policy.WorkReboot, Spares: 1,
			OperatorActions: 1,
		},
		{
			Name: "an upgrade with a pause before the last member, one operator command", Work: policy.WorkRestart,
			Upgrade: true, OperatorActions: 1,
		},
		{
			Name: "an upgrade with a pause before the last member, a fault", Work: policy.WorkRestart, Upgrade: true,
			Budget: 1,
		},
	}
}

// LongRollouts returns the scopes that take about a minute each.
func LongRollouts() []Rollout {
	return []Rollout{
		{Name: "a rollout of reboots with a spare, a fault", Work: policy.WorkReboot, Spares: 1, Budget: 1},
		{
			Name: "a rollout of restarts, 1 fault, one operator command", Work: policy.WorkRestart, OperatorActions: 1,
			Budget: 1,
		},
	}
}

// DeepRollouts returns larger scopes, which need much memory and time. Each ends at its bound or at its fixpoint.
func DeepRollouts() []Rollout {
	return []Rollout{
		{
			Name: "a rollout of reboots with a spare, 1 fault, one operator command", Work: policy.WorkReboot,
			Spares:          1,
			OperatorActions: 1,
			Budget:          1,
		},
		{
			Name: "a rollout of restarts, 1 fault, two operator commands", Work: policy.WorkRestart, OperatorActions: 2,
			Budget: 1,
		},
		{
			Name: "a rollout of restarts, 2 faults, one operator command", Work: policy.WorkRestart, OperatorActions: 1,
			Budget: 2,
		},
	}
}

// rolloutVoters is the number of voters in every scope.
const rolloutVoters = 3

func (r Rollout) hosts() int { return rolloutVoters + r.Spares }

// maxRolloutHosts is the maximum number of hosts in a scope.
const maxRolloutHosts = rolloutVoters + 1

// The states of a rollout's record.
const (
	rolloutRuns uint8 = iota + 1
	rolloutPaused
	rolloutStopped
	rolloutAborted
	rolloutDone
)

// rolloutRequest is the request on a host's disk.
type rolloutRequest struct {
	hostRequest
	resumed   uint8 // how many times the rollout had been started or resumed when it made the request
	restarted uint8 // etcd was started since its operation began
}

// rolloutHost is a host in a rollout.
type rolloutHost struct {
	rolloutRequest
	lastResumed  uint8 // the value of resumed in the last request that has ended; 0 for none
	unit         uint8
	agentDown    uint8
	hostDown     uint8
	cutOff       uint8 // its agent reaches no endpoint
	slow         uint8 // its health state is SLOW
	wrongVersion uint8 // the installed version of etcd is not the one that the rollout requires
	upgraded     uint8 // in an upgrade, etcd has started with the new version

	hasToken uint8 // its agent has a token of the lock, which it may have lost since

	step          uint8 // the step that its agent has decided on
	arg           uint8 // the step's phase, outcome or next leader
	opFresh       uint8 // the operation record has not changed since that decision
	writesRollout uint8 // the step writes the rollout's record, too
	rolloutFresh  uint8 // the rollout's record has not changed since that decision

	pending        policy.RequestChange // the change in flight to the disk or to the rollout's record
	pendingOutcome uint8                // the outcome that the change records, such as rolloutCycled
	pendingRequest rolloutRequest       // the request when the agent decided on the change
	pendingResumed uint8                // the value of resumed in the rollout that makes this request
	pendingStale   uint8                // the rollout's record has changed since that decision
	pendingBoot    uint8                // begunNow or begunBefore: the boot in which the observed operation began

	// Only the checks read the rest: the value of rolloutWorld.trueResumed when the operation began, its value when the
	// work was last done, and whether the host is down for the work.
	begunIn, doneIn, down uint8
}

// rolloutWorld is a state of the exploration.
type rolloutWorld struct {
	hosts [maxRolloutHosts]rolloutHost

	state       uint8                    // the state of the rollout
	hold        uint8                    // the rollout has yet to pause before the last member
	decided     uint8                    // only for the checks: an operator has let the last member be upgraded
	waiting     uint8                    // the hosts that wait, one bit per host
	resumed     uint8                    // how many times the rollout was started or resumed, according to its record
	trueResumed uint8                    // the actual number, even if the record was overwritten with an older one
	queueDown   [policy.DownLength]uint8 // the queue: each entry is a host plus 1, or 0
	queueWriter uint8                    // the host that has written the queue, plus 1; 0 for none

	op         uint8 // the host of the operation, plus 1; 0 for none
	phase      uint8
	token      uint8 // the operation record has the current token of the lock
	sameBoot   uint8 // the operation's host has not rebooted
	lock       uint8 // the host that holds the lock, plus 1; 0 for none
	leader     uint8
	cooledDown uint8 // no operation has been in flight for as long as the cooldown
	servedLong uint8 // the operation's host has served for long enough
	actions    uint8 // number of operators' actions so far
	faults     uint8
}

// initial returns the world in which a rollout of all hosts has just been started.
func (r Rollout) initial() (w rolloutWorld) {
	w.state, w.waiting, w.resumed, w.trueResumed, w.cooledDown = rolloutRuns, 1<<r.hosts()-1, 1, 1, 1
	w.hold = bit(r.Upgrade)
	for i := range rolloutVoters {
		w.hosts[i].unit = active
	}
	return w
}

// hostWork returns the work that the scope's rollout requests of a host.
func (r Rollout) hostWork() uint8 {
	if r.Work == policy.WorkReboot {
		return agentReboot
	}
	return restart
}

func (w *rolloutWorld) quorum() bool {
	n := 0
	for i := range rolloutVoters {
		n += int(bit(w.hosts[i].unit == active))
	}
	return n >= policy.Quorum(rolloutVoters)
}

// reaches reports whether a host's agent reaches the cluster.
func (w *rolloutWorld) reaches(i int) bool {
	h := &w.hosts[i]
	return h.agentDown|h.hostDown|h.cutOff == 0 && w.quorum()
}

func (w *rolloutWorld) owns(i int) bool { return int(w.op) == i+1 }

// looksEveryRound reports whether a host reads the cluster in every round, instead of only the records.
func (w *rolloutWorld) looksEveryRound(i int) bool {
	named := false
	for _, d := range w.queueDown {
		named = named || int(d) == i+1
	}
	return policy.LooksEveryRound(policy.RoundNeeds{
		HoldsLock: w.hosts[i].hasToken != 0, StepRunning: w.hosts[i].step != rolloutNone, Listed: i < rolloutVoters,
		InQueue: named, OwnOperation: w.owns(i),
	})
}

// tidy clears state that has no meaning, so that worlds that no agent can distinguish become equal.
func (w *rolloutWorld) tidy() {
	for i := range w.hosts {
		h := &w.hosts[i]
		if h.work == noWork {
			h.rolloutRequest = rolloutRequest{}
		}
		if h.step == rolloutNone {
			h.arg, h.opFresh, h.writesRollout, h.rolloutFresh = 0, 0, 0, 0
		}
		if h.pending == policy.RequestStays {
			h.pendingOutcome, h.pendingRequest = 0, rolloutRequest{}
			h.pendingResumed, h.pendingStale, h.pendingBoot = 0, 0, 0
		}
	}
	if w.op == 0 {
		w.phase, w.token, w.sameBoot, w.servedLong = 0, 0, 0, 0
	} else {
		w.cooledDown = 0
		if h := &w.hosts[w.op-1]; w.phase != phaseBack || h.unit != active {
			w.servedLong = 0
		}
	}
	if w.lock == 0 {
		w.token = 0
	}
	if w.hosts[w.leader].unit != active { // a new leader is elected
		for i := range rolloutVoters {
			if w.hosts[i].unit == active && w.quorum() {
				w.leader = uint8(i)
				break
			}
		}
	}
	if w.queueWriter != 0 && w.hosts[w.queueWriter-1].agentDown != 0 { // the queue ends with its writer's lease
		w.queueWriter, w.queueDown = 0, [policy.DownLength]uint8{}
	}
}

// rolloutWritten marks the rollout's record as changed.
func (w *rolloutWorld) rolloutWritten() {
	for i := range w.hosts {
		w.hosts[i].rolloutFresh, w.hosts[i].pendingStale = 0, 1
	}
}

// opWritten marks the operation record as changed or deleted.
func (w *rolloutWorld) opWritten() {
	for i := range w.hosts {
		w.hosts[i].opFresh = 0
	}
}

// text returns a world on one line, for a trace.
func (r Rollout) text(w *rolloutWorld) string {
	all := []string{fmt.Sprintf("rollout %s, waiting %s, resumed %d",
		[...]string{"none", "runs", "paused", "stopped", "aborted", "done"}[w.state], names(w.waiting), w.resumed)}
	if w.op != 0 {
		all = append(all, fmt.Sprintf("operation of %s, %s", hostName(int(w.op)-1), opPhase(w.phase)))
	}
	if w.lock != 0 {
		all = append(all, "lock="+hostName(int(w.lock)-1))
	}
	for i := range r.hosts() {
		h := &w.hosts[i]
		s := hostName(i) + "=" + string(unitState(h.unit))
		for _, f := range []struct {
			set  bool
			text string
		}{
			{i == int(w.leader), "leads"},
			{h.work != noWork, "requested"},
			{h.begun == begunNow, "begun"},
			{h.begun == begunBefore, "rebooted"},
			{h.opSeen != 0, "seen"},
			{h.ended != 0, "ended"},
			{h.stopped != 0, "recorded as stopped"},
			{h.released != 0, "released"},
			{h.slow != 0, "slow"},
			{h.wrongVersion != 0, "wrong version"},
			{h.upgraded != 0, "upgraded"},
			{h.hasToken != 0, "has the lock"},
			{h.step != rolloutNone, "is about to " + rolloutStepTexts()[h.step]},
			{h.pending != policy.RequestStays, fmt.Sprintf("its request changes (policy.RequestChange %d)", h.pending)},
			{h.agentDown != 0, "no agent"},
			{h.hostDown != 0, "off"},
			{h.cutOff != 0, "cut off"},
		} {
			if f.set {
				s += "," + f.text
			}
		}
		all = append(all, s)
	}
	return strings.Join(all, "  ")
}

func names(hosts uint8) (s string) {
	for i := range maxRolloutHosts {
		if hosts>>i&1 != 0 {
			s += hostName(i)
		}
	}
	return s
}
