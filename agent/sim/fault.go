// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"fmt"
	"slices"
	"time"
)

// fault is a failure, or an action of an operator. begin applies it to a host. If begin returns a function, that
// function is called to end the fault after its duration.
type fault struct {
	name         string
	weight       int
	low, high    time.Duration // bounds of the fault's duration
	begin        func(w *world, h *host, d time.Duration) (end func())
	needsCluster bool // the fault begins only if a cluster exists
}

// activeFault is a fault in progress.
type activeFault struct{ end func() }

// faultTable returns the faults that can occur in this scenario.
func (p plan) faultTable() []fault {
	table := slices.Concat(agentFaults(), hostFaults(), networkFaults(), diskFaults(), etcdFaults(), operatorFaults(),
		maintenanceFaults())
	if p.Intruders {
		table = append(table, intruderFaults()...)
	}
	if p.Dead > 0 {
		table = append(table, deathFaults()...)
	}
	if p.Unhealthy > 0 {
		table = append(table, unhealthyFaults()...)
	}
	if p.Resizes {
		table = append(table, resizeFaults()...)
	}
	if p.Readdresses {
		table = append(table, readdressFaults()...)
	}
	if p.Corrupts {
		table = append(table, corruptFaults()...)
	}
	if p.Recalls {
		table = append(table, recallFaults()...)
	}
	return table
}

func agentFaults() []fault {
	return []fault{
		{
			name: "the agent is killed", weight: 6, low: time.Second, high: 3 * time.Minute,
			begin: func(_ *world, h *host, _ time.Duration) func() {
				h.kill()
				return h.restartAgent
			},
		},
		{
			name: "the agent is restarted cleanly", weight: 3, low: 3 * time.Second, high: time.Minute,
			begin: func(_ *world, h *host, _ time.Duration) func() {
				if h.agent != nil {
					h.agent.cancel()
					h.agent = nil
				}
				return h.restartAgent
			},
		},
		{
			name: "the agent is frozen", weight: 4, low: time.Second, high: 5 * time.Minute,
			begin: func(w *world, h *host, d time.Duration) func() {
				if h.agent != nil {
					w.freeze(h.agent, d, "")
				}
				return nil
			},
		},
		{
			name: "the agent is frozen in a call", weight: 8, low: 20 * time.Second, high: 10 * time.Minute,
			begin: func(w *world, _ *host, d time.Duration) func() {
				calls := frozenCalls()
				t := trap{call: calls[w.faults.IntN(len(calls))], before: w.faults.IntN(2) == 0, length: d}
				for _, each := range w.hosts {
					each.trap = t
				}
				return nil
			},
		},
		{
			name: "keepalives get no answer", weight: 2, low: 10 * time.Second, high: 3 * time.Minute,
			begin: func(_ *world, h *host, _ time.Duration) func() {
				h.dropsKeepalives = true
				return func() { h.dropsKeepalives = false }
			},
		},
		{
			name: "the bus hangs", weight: 1, low: 10 * time.Second, high: 10 * time.Minute,
			begin: func(_ *world, h *host, _ time.Duration) func() {
				h.unit.busHangs = true
				return func() { h.unit.busHangs = false }
			},
		},
	}
}

// frozenCalls returns the calls in which agents are frozen. An agent that is frozen before it sends a change continues
// with an old view.
func frozenCalls() []string {
	return []string{
		"confirm", "confirm", "add learner", "promote", "remove learner", "remove member", "write", "grant",
		"keepalive", "move aside",
	}
}

// restartAgent starts the agent unless it runs or the host has no power.
func (h *host) restartAgent() {
	if h.agent == nil && h.powered {
		h.startAgent()
	}
}

func hostFaults() []fault {
	return []fault{
		{
			name: "the host loses power", weight: 5, low: 5 * time.Second, high: 30 * time.Minute,
			begin: func(_ *world, h *host, _ time.Duration) func() {
				h.losePower()
				return h.powerUp
			},
		},
		{
			name: "the wall clock is wrong", weight: 2, low: time.Minute, high: 30 * time.Minute,
			begin: func(w *world, h *host, _ time.Duration) func() {
				h.setWall(time.Duration(w.faults.IntN(7200)-3600) * time.Second)
				return func() { h.setWall(0) }
			},
		},
	}
}

func (h *host) setWall(off time.Duration) {
	h.wallOffsetNanos.Store(int64(off))
	h.wallSetAt.Store(int64(h.world.now()))
	h.world.event(h, eventFault, uint64(off), "its wall clock is off by %s", off)
}

// losePower ends all processes of a host and removes everything that is not durable.
func (h *host) losePower() {
	if !h.powered {
		return
	}
	h.kill()
	h.powered = false
	u := h.unit
	u.running, u.frozen, u.ranSinceBoot, u.byAgent, u.starts = false, false, false, false, u.starts+1
	u.setState(inactive, "success")
	h.files.losePower()
	h.program = program{}
	h.world.updateEtcds()
}

// powerUp boots a host. If the host has a member's data, systemd starts etcd before the agent runs, unless an operator
// has stopped etcd.
func (h *host) powerUp() {
	if h.powered || h.dead {
		return
	}
	w := h.world
	h.powered = true
	h.boots++
	h.booted = w.now()
	h.disk.distrusted = false
	w.event(h, eventFault, uint64(h.boots), "boots")
	if h.data.member != 0 && !h.unit.byOperator {
		h.unit.start()
	}
	w.updateEtcds()
	w.after(between(w.draw(uint64(h.index), 30), 2*time.Second, 20*time.Second), laneFaults, h.restartAgent)
}

func diskFaults() []fault {
	set := func(s diskState) func(w *world, h *host, _ time.Duration) func() {
		return func(_ *world, h *host, _ time.Duration) func() {
			h.disk.setState(s)
			return func() { h.disk.setState(diskFine) }
		}
	}
	return []fault{
		{name: "the disk is slightly slow", weight: 1, low: time.Minute, high: 20 * time.Minute, begin: set(diskWarm)},
		{name: "the disk is slow", weight: 2, low: time.Minute, high: 20 * time.Minute, begin: set(diskSlow)},
		{
			name: "the disk is far too slow", weight: 1, low: time.Minute, high: 20 * time.Minute,
			begin: set(diskCrawls),
		},
		{name: "the disk hangs", weight: 3, low: time.Second, high: 5 * time.Minute, begin: set(diskHangs)},
		{name: "the disk fails", weight: 1, low: time.Second, high: 10 * time.Minute, begin: set(diskFails)},
		{
			name: "the disk is not measured", weight: 3, low: 10 * time.Second, high: 20 * time.Minute,
			begin: set(probeDead),
		},
		{
			name: "the disk is full", weight: 1, low: time.Minute, high: 20 * time.Minute,
			begin: func(_ *world, h *host, _ time.Duration) func() {
				h.disk.free = 1 << 20
				return func() { h.disk.free = plentyOfSpace }
			},
		},
		{
			name: "all disks are slow", weight: 1, low: time.Minute, high: 15 * time.Minute,
			begin: func(w *world, _ *host, _ time.Duration) func() {
				for _, h := range w.hosts {
					h.disk.setState(diskSlow)
				}
				return func() {
					for _, h := range w.hosts {
						h.disk.setState(diskFine)
					}
				}
			},
		},
	}
}

func etcdFaults() []fault {
	return []fault{
		{
			name: "etcd is killed", weight: 5, low: time.Second, high: time.Second,
			begin: func(_ *world, h *host, _ time.Duration) func() {
				if h.unit.running {
					h.unit.exit(failed, "signal")
				}
				return nil
			},
		},
		{
			name: "etcd is frozen", weight: 3, low: time.Second, high: 5 * time.Minute,
			begin: func(w *world, h *host, _ time.Duration) func() {
				if !h.unit.running {
					return nil
				}
				h.unit.frozen = true
				w.updateEtcds()
				return func() { h.unit.frozen = false; w.networkChanged() }
			},
		},
		{
			name: "the leader changes", weight: 4, low: time.Second, high: time.Second, needsCluster: true,
			begin: func(w *world, _ *host, _ time.Duration) func() {
				if m := w.etcd.candidate(uint64(w.faults.IntN(lanes))); m != nil {
					w.etcd.setLeader(m)
					w.etcd.update()
				}
				return nil
			},
		},
		{
			name: "a learner never catches up", weight: 3, low: time.Minute, high: time.Hour,
			begin: func(w *world, h *host, _ time.Duration) func() {
				h.learnerStuck = true
				w.setLearnerRates()
				return func() { h.learnerStuck = false; w.setLearnerRates() }
			},
		},
	}
}

// setLearnerRates sets every member's rate. The rate is 0 on a host whose learners never catch up.
func (w *world) setLearnerRates() {
	w.etcd.advance()
	for _, m := range w.etcd.members {
		m.rate = w.plan.LearnerRate
		if m.host.learnerStuck {
			m.rate = 0
		}
	}
}

// makeFaults injects faults for a while.
func (w *world) makeFaults(length time.Duration) {
	table := w.plan.faultTable()
	total := 0
	for _, f := range table {
		total += f.weight
	}
	for end := w.now() + length; w.now() < end; {
		w.mu.Lock()
		wait := time.Duration(w.faults.ExpFloat64() * float64(w.plan.FaultInterval))
		w.mu.Unlock()
		w.wait(w.moment(min(wait, end-w.now())+time.Second, laneFaults))
		w.mu.Lock()
		broken := w.promises.first != nil
		if w.etcd.clusterID == 0 {
			w.requestBootstrap(w.hosts[0])
		}
		n := w.faults.IntN(total)
		i := slices.IndexFunc(table, func(f fault) bool { n -= f.weight; return n < 0 })
		w.begin(table[i])
		w.mu.Unlock()
		if broken {
			return
		}
	}
}

func (w *world) begin(f fault) {
	h := w.hosts[w.faults.IntN(len(w.hosts))]
	d := f.low + time.Duration(w.faults.Float64()*w.faults.Float64()*float64(f.high-f.low))
	if f.needsCluster && w.etcd.clusterID == 0 {
		return
	}
	w.counts.Faults++
	w.event(h, eventFault, uint64(d), "FAULT: %s (%s)", f.name, d.Round(time.Millisecond))
	end := f.begin(w, h, d)
	if end == nil {
		return
	}
	u := &activeFault{end: end}
	w.activeFaults = append(w.activeFaults, u)
	w.after(d, laneFaults, func() {
		if i := slices.Index(w.activeFaults, u); i >= 0 {
			w.activeFaults = slices.Delete(w.activeFaults, i, i+1)
			w.event(h, eventFault, 2, "ends: %s", f.name)
			end()
		}
	})
}

// heal ends all faults, and reboots the hosts whose health state would stay FAILED until a boot.
func (w *world) heal() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.event(nil, eventFault, 3, "%s", fmt.Sprintf("--- all faults end (%d are active) ---", len(w.activeFaults)))
	for _, u := range w.activeFaults {
		u.end()
	}
	w.activeFaults, w.healed = nil, true
	for _, h := range w.hosts {
		h.trap = trap{}
		if h.disk.distrusted { // an operator replaces the disk
			h.losePower()
			w.after(time.Minute, laneFaults, h.powerUp)
		}
	}
}
