// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/quorumd/quorumd/agent/control"
	"github.com/quorumd/quorumd/systemd"
)

// fault is a failure, or an operator's action. It begins on a host. If begin returns an undo function, the fault ends
// after some time.
type fault struct {
	name        string
	weight      int
	low, high   time.Duration // how long it lasts
	begin       func(w *world, h *host, d time.Duration) (end func())
	onlyCluster bool // only when there is a cluster
}

// activeFault is a fault in progress.
type activeFault struct{ end func() }

// faultTable returns everything that can go wrong.
func (p plan) faultTable() []fault {
	table := slices.Concat(agentFaults(), hostFaults(), networkFaults(), diskFaults(), etcdFaults(), people(),
		maintainers())
	if p.Intruders {
		table = append(table, intruders()...)
	}
	if p.Dead > 0 {
		table = append(table, deaths()...)
	}
	if p.Unhealthy > 0 {
		table = append(table, unhealthyFaults()...)
	}
	return table
}

func agentFaults() []fault {
	return []fault{
		{
			name: "the agent is killed", weight: 6, low: time.Second, high: 3 * time.Minute,
			begin: func(_ *world, h *host, _ time.Duration) func() {
				h.kill()
				return h.agentBack
			},
		},
		{
			name: "the agent is restarted cleanly", weight: 3, low: 3 * time.Second, high: time.Minute,
			begin: func(_ *world, h *host, _ time.Duration) func() {
				if h.agent != nil {
					h.agent.end()
					h.agent = nil
				}
				return h.agentBack
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
			begin: func(w *world, h *host, d time.Duration) func() {
				calls := frozenIn()
				t := trap{call: calls[w.faults.IntN(len(calls))], before: w.faults.IntN(2) == 0, length: d}
				for _, each := range w.hosts { // for the first host that makes the call
					each.trap = t
				}
				_ = h
				return nil
			},
		},
		{
			name: "keepalives get no answer", weight: 2, low: 10 * time.Second, high: 3 * time.Minute,
			begin: func(_ *world, h *host, _ time.Duration) func() {
				h.mute = true
				return func() { h.mute = false }
			},
		},
		{
			name: "the bus hangs", weight: 1, low: 10 * time.Second, high: 10 * time.Minute,
			begin: func(_ *world, h *host, _ time.Duration) func() {
				h.unit.broken = true
				return func() { h.unit.broken = false }
			},
		},
	}
}

// frozenIn returns the calls in which agents are frozen. The calls before a change are the agent's last observations.
func frozenIn() []string {
	return []string{
		"confirm", "confirm", "add learner", "promote", "remove learner", "remove member", "write", "grant",
		"keepalive", "move aside",
	}
}

// agentBack starts the agent again unless it runs.
func (h *host) agentBack() {
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
	h.wallOff.Store(int64(off))
	h.wallAt.Store(int64(h.world.now()))
	h.world.happen(h, happenedFault, uint64(off), "its wall clock is off by %s", off)
}

// losePower ends everything on a host and loses everything that is not durable.
func (h *host) losePower() {
	if !h.powered {
		return
	}
	h.kill()
	h.powered = false
	u := h.unit
	u.process, u.frozen, u.ran, u.byAgent, u.started = false, false, false, false, u.started+1
	u.become(inactive, "success")
	h.files.losePower()
	h.program = program{}
	h.world.settle()
}

// powerUp boots a host. Its etcd is enabled if it ever ran a member, and starts without the agent.
func (h *host) powerUp() {
	if h.powered || h.gone {
		return
	}
	w := h.world
	h.powered = true
	h.boot++
	h.booted = w.now()
	h.disk.worn = false
	w.happen(h, happenedFault, uint64(h.boot), "boots")
	if h.data.member != 0 && h.unit.stoppedBy == "" {
		h.unit.start()
	}
	w.settle()
	w.after(between(w.draw(uint64(h.index), 30), 2*time.Second, 20*time.Second), laneFaults, func() { h.agentBack() })
}

func networkFaults() []fault {
	isolate := func(in, out bool) func(w *world, h *host, _ time.Duration) func() {
		return func(w *world, h *host, _ time.Duration) func() {
			cut := func(by int) {
				for _, o := range w.hosts {
					if in {
						w.cut(o, h, by)
					}
					if out {
						w.cut(h, o, by)
					}
				}
				w.noticed()
			}
			cut(1)
			return func() { cut(-1) }
		}
	}
	return []fault{
		{name: "the host is cut off", weight: 5, low: time.Second, high: 20 * time.Minute, begin: isolate(true, true)},
		{
			name: "the host receives nothing", weight: 3, low: time.Second, high: 10 * time.Minute,
			begin: isolate(true, false),
		},
		{
			name: "the host sends nothing", weight: 3, low: time.Second, high: 10 * time.Minute,
			begin: isolate(false, true),
		},
		{name: "the network is split", weight: 3, low: time.Second, high: 15 * time.Minute, begin: split},
		{
			name: "one direction between two hosts is cut", weight: 4, low: time.Second, high: 20 * time.Minute,
			begin: func(w *world, h *host, _ time.Duration) func() {
				o := w.hosts[w.faults.IntN(len(w.hosts))]
				w.cut(h, o, 1)
				w.noticed()
				return func() { w.cut(h, o, -1); w.noticed() }
			},
		},
		{
			name: "answers are lost", weight: 4, low: 10 * time.Second, high: 10 * time.Minute,
			begin: func(w *world, h *host, _ time.Duration) func() {
				h.lossy = uint64(10 + w.faults.IntN(80))
				return func() { h.lossy = 0 }
			},
		},
		{
			name: "writes are delayed", weight: 6, low: 10 * time.Second, high: 15 * time.Minute,
			begin: func(w *world, h *host, _ time.Duration) func() {
				h.late = uint64(10 + w.faults.IntN(80))
				return func() { h.late = 0 }
			},
		},
		{
			name: "the network is slow", weight: 3, low: 10 * time.Second, high: 10 * time.Minute,
			begin: func(w *world, h *host, _ time.Duration) func() {
				h.slow.Store(int64(time.Duration(100+w.faults.IntN(2500)) * time.Millisecond))
				return func() { h.slow.Store(0) }
			},
		},
	}
}

// split cuts the hosts into two partitions.
func split(w *world, h *host, _ time.Duration) func() {
	side := make([]bool, len(w.hosts))
	for i := range side {
		side[i] = w.faults.IntN(2) == 0
	}
	side[h.index] = true
	cut := func(by int) {
		for _, a := range w.hosts {
			for _, b := range w.hosts {
				if side[a.index] != side[b.index] {
					w.cut(a, b, by)
				}
			}
		}
		w.noticed()
	}
	cut(1)
	return func() { cut(-1) }
}

// noticed lets etcd, and removed members, notice a change of the network.
func (w *world) noticed() {
	w.settle()
	for _, h := range w.hosts {
		h.unit.look()
	}
}

func diskFaults() []fault {
	turn := func(s diskState) func(w *world, h *host, _ time.Duration) func() {
		return func(_ *world, h *host, _ time.Duration) func() {
			h.disk.become(s)
			return func() { h.disk.become(diskFine) }
		}
	}
	return []fault{
		{name: "the disk is slightly slow", weight: 1, low: time.Minute, high: 20 * time.Minute, begin: turn(diskWarm)},
		{name: "the disk is slow", weight: 2, low: time.Minute, high: 20 * time.Minute, begin: turn(diskSlow)},
		{
			name: "the disk is far too slow", weight: 1, low: time.Minute, high: 20 * time.Minute,
			begin: turn(diskCrawls),
		},
		{name: "the disk hangs", weight: 3, low: time.Second, high: 5 * time.Minute, begin: turn(diskHangs)},
		{name: "the disk fails", weight: 1, low: time.Second, high: 10 * time.Minute, begin: turn(diskFails)},
		{
			name: "the disk is not measured", weight: 3, low: 10 * time.Second, high: 20 * time.Minute,
			begin: turn(probeDead),
		},
		{
			name: "the disk is full", weight: 1, low: time.Minute, high: 20 * time.Minute,
			begin: func(_ *world, h *host, _ time.Duration) func() {
				h.disk.free = 1 << 20
				return func() { h.disk.free = plenty }
			},
		},
		{
			name: "all disks are slow", weight: 1, low: time.Minute, high: 15 * time.Minute,
			begin: func(w *world, _ *host, _ time.Duration) func() {
				for _, h := range w.hosts {
					h.disk.become(diskSlow)
				}
				return func() {
					for _, h := range w.hosts {
						h.disk.become(diskFine)
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
				if h.unit.process {
					h.unit.exit(failed, "signal")
				}
				return nil
			},
		},
		{
			name: "etcd is frozen", weight: 3, low: time.Second, high: 5 * time.Minute,
			begin: func(w *world, h *host, _ time.Duration) func() {
				if !h.unit.process {
					return nil
				}
				h.unit.frozen = true
				w.settle()
				return func() { h.unit.frozen = false; w.noticed() }
			},
		},
		{
			name: "the leader changes", weight: 4, low: time.Second, high: time.Second, onlyCluster: true,
			begin: func(w *world, _ *host, _ time.Duration) func() {
				if m := w.etcd.candidate(uint64(w.faults.IntN(lanes))); m != nil {
					w.etcd.lead(m)
					w.etcd.settle()
				}
				return nil
			},
		},
		{
			name: "a learner never catches up", weight: 3, low: time.Minute, high: time.Hour,
			begin: func(w *world, h *host, _ time.Duration) func() {
				h.stuck = true
				w.rates()
				return func() { h.stuck = false; w.rates() }
			},
		},
	}
}

// rates sets every learner's speed to what its host allows.
func (w *world) rates() {
	w.etcd.advance()
	for _, m := range w.etcd.members {
		m.rate = w.plan.LearnerRate
		if m.host.stuck {
			m.rate = 0
		}
	}
}

func people() []fault {
	return []fault{
		{
			name: "an operator pauses the cluster", weight: 2, low: time.Minute, high: 20 * time.Minute,
			begin: func(w *world, h *host, d time.Duration) func() {
				w.operator(h, func(ctx context.Context, p *process) {
					// it may not arrive
					req := control.PauseRequest{Reason: "a look", For: control.Duration(d)}
					_, _ = p.agent.Pause(ctx, req, "an operator")
				})
				resumed := w.faults.IntN(2) == 0
				return func() {
					if resumed {
						// as above
						w.operator(h, func(ctx context.Context, p *process) { _ = p.agent.Resume(ctx, "an operator") })
					}
				}
			},
		},
		{
			name: "an operator requests a bootstrap", weight: 2, low: time.Second, high: time.Second,
			begin: func(w *world, h *host, _ time.Duration) func() {
				// operators must not ask two hosts at once
				if w.etcd.clusterID != 0 && !w.rescue.lost {
					w.askToBootstrap(h)
				}
				return nil
			},
		},
		{
			name: "an operator requests the status", weight: 2, low: time.Second, high: time.Second,
			begin: func(w *world, h *host, _ time.Duration) func() {
				w.operator(h, func(ctx context.Context, p *process) {
					p.agent.Status()
					_, _ = p.agent.History(ctx, 20) // etcd may be unreachable
				})
				return nil
			},
		},
		{
			name: "an operator stops etcd", weight: 2, low: time.Second, high: 20 * time.Minute,
			begin: func(_ *world, h *host, _ time.Duration) func() {
				return h.stopEtcd()
			},
		},
		{
			name: "an operator stops every etcd and requests a bootstrap", weight: 1, low: time.Minute,
			high: 10 * time.Minute, onlyCluster: true, begin: func(w *world, h *host, _ time.Duration) func() {
				var ends []func()
				for _, o := range w.hosts {
					if end := o.stopEtcd(); end != nil {
						ends = append(ends, end)
					}
					if len(o.data.members) == 0 { // a host that never was a member is the most likely to agree
						h = o
					}
				}
				w.after(30*time.Second, laneFaults, func() { w.askToBootstrap(h) })
				return func() {
					for _, end := range ends {
						end()
					}
				}
			},
		},
		{
			name: "an operator removes a member", weight: 3, low: time.Second, high: time.Second, onlyCluster: true,
			begin: func(w *world, h *host, _ time.Duration) func() {
				w.removeMember(h)
				return nil
			},
		},
		{
			name: "an operator removes members while the possible replacements are unhealthy", weight: 6,
			low:  3 * time.Minute,
			high: 40 * time.Minute, onlyCluster: true, begin: removeAndTrouble,
		},
		{
			name: "an operator releases the operation", weight: 1, low: time.Second, high: time.Second,
			begin: func(w *world, h *host, _ time.Duration) func() {
				w.operator(h, func(ctx context.Context, p *process) {
					// there may be none
					_ = p.agent.ReleaseOp(ctx, control.ReleaseRequest{Reason: "it is stuck"}, "an operator")
				})
				return nil
			},
		},
	}
}

// stopEtcd stops etcd, as an operator does with systemctl. It returns how to undo that, or nil if nothing runs.
func (h *host) stopEtcd() (start func()) {
	if !h.unit.process {
		return nil
	}
	h.unit.stoppedBy = "operator"
	h.unit.stop()
	return func() {
		h.unit.stoppedBy = ""
		h.unit.again = h.unit.process && h.unit.state == systemd.Deactivating
		if h.data.member != 0 && h.unit.state == inactive {
			h.unit.start()
		}
	}
}

// removeMember removes a member, as an operator does with etcdctl; a voter only if all are up.
func (w *world) removeMember(h *host) {
	e := w.etcd
	m := e.on(h)
	if m == nil || m.learner || !e.leads() || len(e.voters()) < 2 {
		return
	}
	for _, v := range e.voters() {
		if !e.reaches(v) || !v.host.unit.ready() {
			return
		}
	}
	if e.remove(e.leader, m.id) == nil {
		e.applyRemove(m.id)
		w.promises.byHand = w.now()
	}
}

// removeAndTrouble makes a vacancy that is hard to fill: it removes up to two voters and causes trouble on every host
// without a member, mostly the same trouble.
func removeAndTrouble(w *world, h *host, _ time.Duration) func() {
	w.removeMember(h)
	if w.faults.IntN(2) == 0 {
		w.removeMember(w.hosts[(h.index+1)%len(w.hosts)])
	}
	kind := w.faults.IntN(4)
	var ends []func()
	for _, o := range w.hosts {
		if w.etcd.on(o) != nil || w.faults.IntN(4) == 0 {
			continue
		}
		ends = append(ends, w.trouble(o, kind))
		kind = (kind + w.faults.IntN(6)/5) % 4
	}
	return func() {
		for _, end := range ends {
			end()
		}
	}
}

// trouble begins a condition that must keep a host from joining.
func (w *world) trouble(h *host, kind int) (end func()) {
	switch kind {
	case 0:
		h.disk.become(probeDead)
	case 1:
		h.disk.become(diskSlow)
	case 2:
		h.setWall(time.Minute)
		return func() { h.setWall(0) }
	default:
		h.unit.broken = true
		return func() { h.unit.broken = false }
	}
	return func() { h.disk.become(diskFine) }
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
		wait := time.Duration(w.faults.ExpFloat64() * float64(w.plan.Every))
		w.mu.Unlock()
		w.wait(w.moment(min(wait, end-w.now())+time.Second, laneFaults))
		w.mu.Lock()
		broken := w.promises.first != nil
		if w.etcd.clusterID == 0 {
			w.askToBootstrap(w.hosts[0])
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

// begin begins a fault.
func (w *world) begin(f fault) {
	h := w.hosts[w.faults.IntN(len(w.hosts))]
	d := f.low + time.Duration(w.faults.Float64()*w.faults.Float64()*float64(f.high-f.low))
	if f.onlyCluster && w.etcd.clusterID == 0 {
		return
	}
	w.counts.Faults++
	w.happen(h, happenedFault, uint64(d), "FAULT: %s (%s)", f.name, d.Round(time.Millisecond))
	end := f.begin(w, h, d)
	if end == nil {
		return
	}
	u := &activeFault{end: end}
	w.underWay = append(w.underWay, u)
	w.after(d, laneFaults, func() {
		if i := slices.Index(w.underWay, u); i >= 0 {
			w.underWay = slices.Delete(w.underWay, i, i+1)
			w.happen(h, happenedFault, 2, "ends: %s", f.name)
			end()
		}
	})
}

// heal ends all faults, and does what only an operator can do.
func (w *world) heal() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.happen(nil, happenedFault, 3, "%s", fmt.Sprintf("--- all faults end (%d are under way) ---", len(w.underWay)))
	for _, u := range w.underWay {
		u.end()
	}
	w.underWay, w.healed = nil, true
	for _, h := range w.hosts {
		h.trap = trap{}
		if h.disk.worn { // FAILED ends only when the disk is replaced
			h.losePower()
			w.after(time.Minute, laneFaults, h.powerUp)
		}
	}
}
