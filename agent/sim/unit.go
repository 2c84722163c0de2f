// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"strings"
	"time"

	"github.com/quorumd/quorumd/agent/policy"
	"github.com/quorumd/quorumd/systemd"
)

// unit is a host's etcd service and its process.
type unit struct {
	host         *host
	state        systemd.State
	since        time.Duration
	result       string
	running      bool // the process exists
	ranSinceBoot bool // the unit has run since boot; if not, systemd reports no time of its last change
	frozen       bool // the process was sent SIGSTOP
	env          map[string]string
	// number of starts and exits; an event with an older number is from an earlier process and is ignored
	starts         int
	listens        string // the peer URL at which the process listens, or did
	busHangs       bool
	byOperator     bool // an operator has stopped the unit
	startAfterStop bool // start the unit as soon as it has stopped
	takenDown      bool // an operation of its host stopped the unit, or found it stopped; the operation will start it
	byAgent        bool // the host's agent started the process
}

// Frequently used states.
const (
	inactive = systemd.Inactive
	failed   = systemd.Failed
)

// The timings of a start: how long etcd takes, systemd's timeout, and the time between two checks of its progress.
const (
	startLow     = 200 * time.Millisecond
	startHigh    = 1500 * time.Millisecond
	startTimeout = 90 * time.Second
	startRetry   = time.Second
)

// startGuardFile prevents any start of the unit while it exists; see package agent.
const startGuardFile = stateDir + "/etcd.hold"

// entriesSinceSnapshot is how many entries a new learner has to apply after the leader's snapshot: the largest default
// of --snapshot-count in any etcd version.
const entriesSinceSnapshot = 100_000

func (u *unit) ready() bool {
	return u.running && u.state == systemd.Active && !u.frozen && u.host.powered
}

func (u *unit) setState(s systemd.State, result string) {
	u.state, u.since, u.result = s, u.host.world.now(), result
	u.host.world.event(u.host, eventUnit, uint64(s), "etcd.service is %s", s)
}

// start starts the process, whichever caller requests it, unless the start guard prevents that.
func (u *unit) start() {
	if u.running || !u.host.powered {
		return
	}
	if _, err := u.host.files.read(startGuardFile); err == nil {
		return
	}
	u.host.world.promises.checkStartDuringWork(u.host)
	u.host.world.promises.checkStart(u.host)
	u.starts++
	u.running, u.ranSinceBoot = true, true
	u.startAfterStop, u.takenDown = false, false
	u.listens = cmp.Or(u.env["ETCD_LISTEN_PEER_URLS"], u.host.peerURL())
	u.setState(systemd.Activating, "success")
	if m := u.member(); m != nil {
		m.upSince = u.host.world.now()
	}
	u.host.world.updateEtcds()
	generation, began := u.starts, u.since
	w := u.host.world
	w.after(between(w.draw(10, uint64(u.host.index)), startLow, startHigh), laneEtcd, func() {
		u.finishStart(generation, began)
	})
}

// member returns the member whose data the host holds, even if that member was removed.
func (u *unit) member() *member {
	e := u.host.etcd()
	if m := e.find(u.host.data.member); m != nil {
		return m
	}
	return e.removed[u.host.data.member]
}

// finishStart decides the outcome of a start, or checks again later.
func (u *unit) finishStart(generation int, began time.Duration) {
	if generation != u.starts || !u.running || u.state != systemd.Activating {
		return
	}
	w := u.host.world
	again := func() { w.after(startRetry, laneEtcd, func() { u.finishStart(generation, began) }) }
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
	e := u.host.etcd() // set only after firstStart, which may have joined another cluster
	m := u.member()
	if u.host.data.cluster != e.clusterID || m == nil {
		again() // the data belongs to no existing cluster
		return
	}
	if m.removed {
		u.exitIfRemoved()
		again()
		return
	}
	e.update()
	if !e.canCommit(m) {
		again()
		return
	}
	m.name = u.host.name
	u.setState(systemd.Active, "success")
	w.startedServing(e)
	e.update()
}

// firstStart starts etcd on an empty directory. It reports whether the directory now holds the data of a member.
func (u *unit) firstStart() bool {
	w, e := u.host.world, u.host.world.etcd
	if u.env["ETCD_INITIAL_CLUSTER_STATE"] == "new" {
		if e.clusterID != 0 {
			w.promises.breach("P2", u.host, "a second cluster is bootstrapped")
			u.exit(failed, "exit-code")
			return false
		}
		m := e.bootstrap(u.host)
		u.host.data.setMember(e.clusterID, m.id)
		m.upSince = w.now()
		w.event(u.host, eventEtcd, 2, "etcd: cluster %x was bootstrapped", e.clusterID)
		e.update()
		return true
	}
	m := e.memberOn(u.host)
	contact := false
	for _, o := range e.members {
		contact = contact || (o.host != u.host && o.host.unit.ready() && w.linked(u.host, o.host))
	}
	if !contact {
		u.exit(failed, "exit-code") // "cannot fetch cluster info from peer urls"
		return false
	}
	if m == nil || !m.learner || !u.envMatches() {
		if u.host.data.member == 0 {
			u.host.data.leftovers = true
		}
		u.exit(failed, "exit-code") // "member count is unequal"
		return false
	}
	u.host.data.setMember(e.clusterID, m.id)
	m.upSince = w.now()
	m.applied, m.appliedAt = e.lastIndex()-min(e.lastIndex(), entriesSinceSnapshot), w.now()
	return true
}

// envMatches reports whether the initial cluster has the same peer URLs as the member list.
func (u *unit) envMatches() bool {
	listed := map[string]bool{}
	for _, m := range u.host.world.etcd.members {
		listed[m.peerURL] = true
	}
	named := map[string]bool{}
	for part := range strings.SplitSeq(u.env["ETCD_INITIAL_CLUSTER"], ",") {
		_, url, _ := strings.Cut(part, "=")
		named[url] = true
	}
	return maps.Equal(listed, named)
}

// exitIfRemoved lets the etcd of a removed member exit, if another member can report the removal.
func (u *unit) exitIfRemoved() {
	m := u.member()
	if m == nil || !m.removed || !u.running || u.frozen {
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
	u.running, u.frozen, u.byAgent = false, false, false
	u.starts++
	u.setState(s, result)
	u.host.world.updateEtcds()
}

// stop ends the process cleanly, which takes a while because etcd closes its watches.
func (u *unit) stop() {
	if !u.running {
		if u.state == failed || u.state == systemd.Activating {
			u.setState(inactive, "success")
		}
		return
	}
	w := u.host.world
	u.setState(systemd.Deactivating, "success")
	generation := u.starts
	w.after(between(w.draw(12, uint64(u.host.index)), 400*time.Millisecond, 3*time.Second), laneEtcd, func() {
		if generation == u.starts && u.running {
			u.exit(inactive, "success")
			if u.startAfterStop {
				u.startAfterStop = false
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
	if a.u.busHangs {
		return systemd.Status{}, errBus
	}
	s := systemd.Status{State: a.u.state, Result: a.u.result, ExitCode: -1, LoadState: "loaded"}
	if a.u.ranSinceBoot {
		s.Since = w.now() - a.u.since
	}
	if a.u.running {
		s.PID = a.u.starts
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
		ran := a.u.running
		a.u.start()
		a.u.byAgent = a.u.byAgent || (a.u.running && !ran)
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

// Restart queues the stop and a start after it.
func (a agentUnit) Restart(ctx context.Context) error {
	return a.do(ctx, "restart", func() {
		a.u.host.world.promises.beforeStop(a.p)
		if !a.u.running {
			a.u.start()
			return
		}
		a.u.startAfterStop = true
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
	if a.u.busHangs {
		return errBus
	}
	w.event(a.u.host, eventCall, uint64(len(what)), "")
	act()
	return nil
}
