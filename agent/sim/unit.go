// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"context"
	"errors"
	"maps"
	"strings"
	"time"

	"github.com/quorumd/quorumd/agent/policy"
	"github.com/quorumd/quorumd/systemd"
)

// unit is a host's etcd service and its process. It is the agent's Unit.
type unit struct {
	host      *host
	state     systemd.State
	since     time.Duration
	result    string
	process   bool // there is one
	ran       bool // it has run since the host booted; otherwise systemd knows no time of a stop
	frozen    bool // it was sent SIGSTOP
	env       map[string]string
	started   int // counts starts, to recognize events of an earlier one
	broken    bool
	stoppedBy string // who stopped it last
	again     bool   // it is to be started as soon as it has stopped
	takenDown bool   // an operation of its host stopped it, or found it stopped; the operation's end starts it
	byAgent   bool   // its agent has started the process
}

// Frequently used states.
const (
	inactive = systemd.Inactive
	failed   = systemd.Failed
)

// The timings of a start: how long etcd takes, and systemd's timeout.
const (
	comesUpLow   = 200 * time.Millisecond
	comesUpHigh  = 1500 * time.Millisecond
	startTimeout = 90 * time.Second
	looksAgain   = time.Second
)

// holdFile keeps the unit from being started by anything while it exists; see package agent.
const holdFile = stateDir + "/etcd.hold"

// sinceSnapshot is how many entries a new learner has to apply after the leader's snapshot: at most as many as there
// are between two snapshots, by the larger of etcd's defaults.
const sinceSnapshot = 100_000

func (u *unit) ready() bool {
	return u.process && u.state == systemd.Active && !u.frozen && u.host.powered
}

func (u *unit) become(s systemd.State, result string) {
	u.state, u.since, u.result = s, u.host.world.now(), result
	u.host.world.happen(u.host, happenedUnit, uint64(s), "etcd.service is %s", s)
}

// start starts the process on anything's request.
func (u *unit) start() {
	if u.process || !u.host.powered {
		return
	}
	if _, err := u.host.files.read(holdFile); err == nil {
		return
	}
	u.host.world.promises.startDuringWork(u.host)
	u.host.world.promises.comesUp(u.host)
	u.started++
	u.process, u.ran = true, true
	u.again, u.takenDown = false, false
	u.become(systemd.Activating, "success")
	if m := u.member(); m != nil {
		m.upSince = u.host.world.now()
	}
	u.host.world.settle()
	generation, began := u.started, u.since
	w := u.host.world
	w.after(between(w.draw(10, uint64(u.host.index)), comesUpLow, comesUpHigh), laneEtcd, func() {
		u.comeUp(generation, began)
	})
}

// member returns the member whose data are here, listed or not.
func (u *unit) member() *member {
	e := u.host.etcd()
	if m := e.find(u.host.data.member); m != nil {
		return m
	}
	return e.removed[u.host.data.member]
}

// comeUp decides the result of a start, and tries again until that is decided.
func (u *unit) comeUp(generation int, began time.Duration) {
	if generation != u.started || !u.process || u.state != systemd.Activating {
		return
	}
	w := u.host.world
	again := func() { w.after(looksAgain, laneEtcd, func() { u.comeUp(generation, began) }) }
	if w.now()-began > startTimeout {
		u.exit(failed, "timeout")
		return
	}
	if u.frozen || u.host.disk.hangs() {
		again()
		return
	}
	if u.host.data.member == 0 && !u.firstStart() {
		return
	}
	e := u.host.etcd() // the cluster whose data are here by now
	m := u.member()
	if u.host.data.cluster != e.clusterID || m == nil {
		again() // of an unknown cluster
		return
	}
	if m.gone {
		u.look()
		again()
		return
	}
	e.settle()
	if !e.reaches(m) {
		again()
		return
	}
	m.name = u.host.name
	u.become(systemd.Active, "success")
	w.serves(e)
	e.settle()
}

// firstStart starts on an empty directory. It reports whether there is a member now.
func (u *unit) firstStart() bool {
	w, e := u.host.world, u.host.world.etcd
	if u.env["ETCD_INITIAL_CLUSTER_STATE"] == "new" {
		if e.clusterID != 0 {
			w.promises.breach("P2", u.host, "a second cluster is bootstrapped")
			u.exit(failed, "exit-code")
			return false
		}
		m := e.bootstrap(u.host)
		u.host.data.become(e.clusterID, m.id)
		m.upSince = w.now()
		w.happen(u.host, happenedEtcd, 2, "etcd: cluster %x was founded", e.clusterID)
		e.settle()
		return true
	}
	m := e.on(u.host)
	contact := false
	for _, o := range e.members {
		contact = contact || (o.host != u.host && o.host.unit.ready() && w.linked(u.host, o.host))
	}
	if !contact {
		u.exit(failed, "exit-code") // cannot fetch cluster info
		return false
	}
	if m == nil || !m.learner || !u.envFits() {
		if u.host.data.member == 0 {
			u.host.data.remains = true
		}
		u.exit(failed, "exit-code") // member count is unequal
		return false
	}
	u.host.data.become(e.clusterID, m.id)
	m.upSince = w.now()
	m.applied, m.at = e.last()-min(e.last(), sinceSnapshot), w.now()
	return true
}

// envFits compares the initial cluster with the member list, by peer URL.
func (u *unit) envFits() bool {
	listed := map[string]bool{}
	for _, m := range u.host.world.etcd.members {
		listed[m.host.peerURL()] = true
	}
	named := map[string]bool{}
	for part := range strings.SplitSeq(u.env["ETCD_INITIAL_CLUSTER"], ",") {
		_, url, _ := strings.Cut(part, "=")
		named[url] = true
	}
	return maps.Equal(listed, named)
}

// look lets a removed member notice that, if another member is there to report it: it exits.
func (u *unit) look() {
	m := u.member()
	if m == nil || !m.gone || !u.process || u.frozen {
		return
	}
	w := u.host.world
	for _, o := range m.etcd.members {
		if o.runs() && w.linked(u.host, o.host) {
			if chance(w.draw(11, uint64(u.host.index)), 50) {
				u.exit(inactive, "success")
			} else {
				u.exit(failed, "exit-code")
			}
			return
		}
	}
}

// exit ends the process.
func (u *unit) exit(s systemd.State, result string) {
	u.process, u.frozen, u.byAgent = false, false, false
	u.started++
	u.become(s, result)
	u.host.world.settle()
}

// stop ends the process in order; closing its watches takes a moment.
func (u *unit) stop() {
	if !u.process {
		if u.state == failed || u.state == systemd.Activating {
			u.become(inactive, "success")
		}
		return
	}
	w := u.host.world
	u.become(systemd.Deactivating, "success")
	generation := u.started
	w.after(between(w.draw(12, uint64(u.host.index)), 400*time.Millisecond, 3*time.Second), laneEtcd, func() {
		if generation == u.started && u.process {
			u.exit(inactive, "success")
			if u.again {
				u.again = false
				u.start()
			}
		}
	})
}

var errBus = errors.New("the bus does not answer")

// agentUnit is the unit as seen by one agent process.
type agentUnit struct {
	p *process
	u *unit
}

// Status returns the state of the service.
func (a agentUnit) Status(context.Context) (systemd.Status, error) {
	a.p.gate(laneLoop)
	w := a.u.host.world
	w.mu.Lock()
	defer w.mu.Unlock()
	if a.u.broken {
		return systemd.Status{}, errBus
	}
	s := systemd.Status{State: a.u.state, Result: a.u.result, ExitCode: -1, LoadState: "loaded"}
	if a.u.ran {
		s.Since = w.now() - a.u.since
	}
	if a.u.process {
		s.PID = a.u.started
	}
	if a.u.result == "exit-code" {
		s.ExitCode = 1
	}
	return s, nil
}

// Start queues the start.
func (a agentUnit) Start(ctx context.Context) error {
	return a.do(ctx, "start", func() {
		a.u.host.world.promises.beforeStart(a.p)
		ran := a.u.process
		a.u.start()
		a.u.byAgent = a.u.byAgent || (a.u.process && !ran)
	})
}

// Stop queues the stop.
func (a agentUnit) Stop(ctx context.Context) error {
	return a.do(ctx, "stop", func() {
		a.u.host.world.promises.beforeStop(a.p)
		if op := a.u.host.world.promises.currentOp(); op != nil && op.Kind == policy.KindCycle &&
			op.Host == a.p.host.config.Host.ID {
			a.u.takenDown = true
		}
		a.u.stop()
	})
}

// Restart queues the stop and the start after it.
func (a agentUnit) Restart(ctx context.Context) error {
	return a.do(ctx, "restart", func() {
		a.u.host.world.promises.beforeStop(a.p)
		if !a.u.process {
			a.u.start()
			return
		}
		a.u.again = true
		a.u.stop()
	})
}

// SetEnvironment writes the environment for the next start.
func (a agentUnit) SetEnvironment(ctx context.Context, vars map[string]string) error {
	return a.do(ctx, "set environment", func() { a.u.env = maps.Clone(vars) })
}

func (a agentUnit) do(ctx context.Context, what string, act func()) error {
	a.p.gate(laneStep)
	w := a.u.host.world
	w.mu.Lock()
	defer w.mu.Unlock()
	if err := ctx.Err(); err != nil {
		return err
	}
	if a.u.broken {
		return errBus
	}
	w.happen(a.u.host, happenedCall, uint64(len(what)), "")
	act()
	return nil
}
