// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package model

import (
	"fmt"
	"strings"

	"github.com/quorumd/quorumd/agent/policy"
)

// A rollout is a walk of its own, over worlds in which no host joins or leaves. It tracks the rollout's record, the
// queue, and each host's record of its request on disk, which is written apart from the steps and may be lost between
// them. The real policy makes the agents' decisions, and decides how a host's end changes the rollout.

// Roll is a scope of that walk: three voters, and spares, are taken down for the same work.
type Roll struct {
	Name   string
	Spares int // at most one, which looks at the cluster only when it is called
	Work   policy.Work
	People int // number of operators' actions: pause, resume, abort, cancel a host, release its operation
	Budget int // most faults in one story
}

// Rolls returns the scopes that every test run explores.
func Rolls() []Roll {
	return []Roll{
		{Name: "a rollout of restarts", Work: policy.WorkRestart},
		{Name: "a rollout of restarts, two operator commands", Work: policy.WorkRestart, People: 2},
		{Name: "a rollout of restarts, a fault", Work: policy.WorkRestart, Budget: 1},
		{
			Name: "a rollout of reboots with a spare, one operator command", Work: policy.WorkReboot, Spares: 1,
			People: 1,
		},
	}
}

// LongRolls returns those that take about a minute each.
func LongRolls() []Roll {
	return []Roll{
		{Name: "a rollout of reboots with a spare, a fault", Work: policy.WorkReboot, Spares: 1, Budget: 1},
		{Name: "a rollout of restarts, 1 fault, one operator command", Work: policy.WorkRestart, People: 1, Budget: 1},
	}
}

// DeepRolls returns larger ones, which need memory and time: each ends at its bound or at its fixpoint.
func DeepRolls() []Roll {
	return []Roll{
		{
			Name: "a rollout of reboots with a spare, 1 fault, one operator command", Work: policy.WorkReboot,
			Spares: 1,
			People: 1,
			Budget: 1,
		},
		{Name: "a rollout of restarts, 1 fault, two operator commands", Work: policy.WorkRestart, People: 2, Budget: 1},
		{Name: "a rollout of restarts, 2 faults, one operator command", Work: policy.WorkRestart, People: 1, Budget: 2},
	}
}

// rollVoters is the number of voters of every such cluster.
const rollVoters = 3

func (r Roll) hosts() int { return rollVoters + r.Spares }

// maxRolled is the largest number of hosts in a scope.
const maxRolled = rollVoters + 1

// The states of a rollout's record.
const (
	rollRuns uint8 = iota + 1
	rollPaused
	rollStopped
	rollAborted
	rollDone
)

// request is the request on a host's disk.
type request struct {
	cycling
	resumed   uint8 // how often its rollout had been resumed at the time, plus one
	restarted uint8 // etcd was started since its operation began
}

// rolled is a host.
type rolled struct {
	request
	had   uint8 // the same for the last request that has ended; 0 for none
	unit  uint8
	dead  uint8 // its agent
	off   uint8 // the host
	apart uint8 // its agent reaches no endpoint
	slow  uint8 // by its own report
	stale uint8 // another version of etcd is installed than wanted

	belief uint8 // its agent believes that it holds the lock

	step  uint8 // that its agent has decided on
	arg   uint8 // its phase, its outcome or the next leader
	fresh uint8 // the operation's record is the one that the step was decided on
	rolls uint8 // it writes the rollout's record, too
	read  uint8 // which is the one that the step was decided on

	note    policy.RequestChange // in flight to the disk or to the rollout's record
	code    uint8                // its outcome: rollCycled or another
	on      request              // the request as it was then
	noteFor uint8                // resumed, of the rollout that asks it
	noteOld uint8                // the rollout's record has changed since
	noteIn  uint8                // the boot in which the operation it has seen began

	// Ghosts: the stretch of the rollout in which its operation began, the one in which its work was last done, and
	// whether it is down for that.
	within, turned, low uint8
}

// rolling is a state of the walk.
type rolling struct {
	hosts [maxRolled]rolled

	state   uint8 // of the rollout
	waiting uint8 // a bit for each host
	resumed uint8 // how often it was started or resumed, by its record
	stretch uint8 // how often it really was started or resumed
	down    [policy.DownLength]uint8
	queued  uint8 // the host, plus one, that has written the queue

	op     uint8 // the host, plus one, that it belongs to
	phase  uint8
	token  uint8 // it has the current token of the lock
	boot   uint8 // its host has not rebooted
	lock   uint8 // the host, plus one, that holds it
	leader uint8
	cool   uint8 // no operation has been in flight for long enough
	back   uint8 // the operation's host has served for long enough
	said   uint8 // number of operators' actions so far
	faults uint8
}

// first returns the world in which a rollout of all hosts has just been started.
func (r Roll) first() (w rolling) {
	w.state, w.waiting, w.resumed, w.stretch, w.cool = rollRuns, 1<<r.hosts()-1, 1, 1, 1
	for i := range rollVoters {
		w.hosts[i].unit = active
	}
	return w
}

// ask returns what the scope's rollout asks of a host.
func (r Roll) ask() uint8 {
	if r.Work == policy.WorkReboot {
		return rebooted
	}
	return restart
}

func (w *rolling) quorum() bool {
	n := 0
	for i := range rollVoters {
		n += int(bit(w.hosts[i].unit == active))
	}
	return n >= policy.Quorum(rollVoters)
}

// reaches reports whether a host's agent reaches the cluster.
func (w *rolling) reaches(i int) bool {
	h := &w.hosts[i]
	return h.dead|h.off|h.apart == 0 && w.quorum()
}

func (w *rolling) owns(i int) bool { return int(w.op) == i+1 }

// called reports whether a host looks at the cluster in every round.
func (w *rolling) called(i int) bool {
	named := false
	for _, d := range w.down {
		named = named || int(d) == i+1
	}
	return policy.LooksEveryRound(policy.RoundNeeds{
		HoldsLock: w.hosts[i].belief != 0, StepRunning: w.hosts[i].step != rollNone, Listed: i < rollVoters, InQueue: named,
		OwnOperation: w.owns(i),
	})
}

// tidy clears what has no meaning, so that worlds that no one can distinguish are one.
func (w *rolling) tidy() {
	for i := range w.hosts {
		h := &w.hosts[i]
		if h.ask == nothing {
			h.request = request{}
		}
		if h.step == rollNone {
			h.arg, h.fresh, h.rolls, h.read = 0, 0, 0, 0
		}
		if h.note == policy.RequestStays {
			h.code, h.on, h.noteFor, h.noteOld, h.noteIn = 0, request{}, 0, 0, 0
		}
	}
	if w.op == 0 {
		w.phase, w.token, w.boot, w.back = 0, 0, 0, 0
	} else {
		w.cool = 0
		if h := &w.hosts[w.op-1]; w.phase != phaseBack || h.unit != active {
			w.back = 0
		}
	}
	if w.lock == 0 {
		w.token = 0
	}
	if w.hosts[w.leader].unit != active { // another leader is elected
		for i := range rollVoters {
			if w.hosts[i].unit == active && w.quorum() {
				w.leader = uint8(i)
				break
			}
		}
	}
	if w.queued != 0 && w.hosts[w.queued-1].dead != 0 { // it ends with the lease of its writer
		w.queued, w.down = 0, [policy.DownLength]uint8{}
	}
}

// rollWritten is a new record of the rollout.
func (w *rolling) rollWritten() {
	for i := range w.hosts {
		w.hosts[i].read, w.hosts[i].noteOld = 0, 1
	}
}

// opWritten is a new record of the operation, or its end.
func (w *rolling) opWritten() {
	for i := range w.hosts {
		w.hosts[i].fresh = 0
	}
}

// text shows a world in a story.
func (r Roll) text(w *rolling) string {
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
			{h.ask != nothing, "asked"},
			{h.begun == begunNow, "begun"},
			{h.begun == begunBefore, "rebooted"},
			{h.seen != 0, "seen"},
			{h.ended != 0, "ended"},
			{h.stopped != 0, "recorded as stopped"},
			{h.freed != 0, "released"},
			{h.slow != 0, "slow"},
			{h.stale != 0, "old etcd"},
			{h.belief != 0, "has the lock"},
			{h.step != rollNone, "is about to " + rollSteps()[h.step]},
			{h.note != policy.RequestStays, fmt.Sprintf("note %d", h.note)},
			{h.dead != 0, "no agent"},
			{h.off != 0, "off"},
			{h.apart != 0, "cut off"},
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
	for i := range maxRolled {
		if hosts>>i&1 != 0 {
			s += hostName(i)
		}
	}
	return s
}
