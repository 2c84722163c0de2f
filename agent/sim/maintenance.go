// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"bytes"
	"context"
	"fmt"
	"time"

	"github.com/quorumd/quorumd/agent/config"
	"github.com/quorumd/quorumd/agent/control"
	"github.com/quorumd/quorumd/agent/policy"
	"github.com/quorumd/quorumd/agent/record"
)

// maintenanceFaults returns the faults in which operators request maintenance, removals and rollouts from quorumd.
func maintenanceFaults() []fault {
	return []fault{
		{
			name: "an operator requests maintenance", weight: 4, low: 10 * time.Second, high: time.Hour,
			begin: func(w *world, h *host, _ time.Duration) func() {
				return w.requestMaintenance(h, control.MaintenanceRequest{
					Work:        policy.WorkMaintenance,
					KeepRunning: w.faults.IntN(5) == 0,
				})
			},
		},
		{
			name: "an operator requests a restart", weight: 3, low: time.Minute, high: time.Hour,
			begin: func(w *world, h *host, _ time.Duration) func() {
				end := w.requestMaintenance(h, control.MaintenanceRequest{Work: policy.WorkRestart})
				if w.faults.IntN(4) != 0 {
					return nil // agents end the restart
				}
				return end
			},
		},
		{
			name: "an operator requests a reboot", weight: 3, low: time.Minute, high: time.Hour,
			begin: func(w *world, h *host, _ time.Duration) func() {
				end := w.requestMaintenance(h, control.MaintenanceRequest{Work: policy.WorkReboot})
				if w.faults.IntN(4) != 0 {
					return nil
				}
				return end
			},
		},
		{
			name: "an operator requests a command", weight: 3, low: time.Minute, high: time.Hour,
			begin: func(w *world, h *host, _ time.Duration) func() {
				req := control.MaintenanceRequest{Work: policy.WorkCommand, Command: "upgrade"}
				end := w.requestMaintenance(h, req)
				if w.faults.IntN(4) != 0 {
					return nil
				}
				return end
			},
		},
		{
			name: "an operator requests the removal of a member", weight: 3, low: time.Second,
			high: time.Minute, needsCluster: true,
			begin: func(w *world, h *host, _ time.Duration) func() {
				w.requestRemoval(h)
				return nil
			},
		},
		{
			name: "an operator requests the removal of a dead member", weight: 3, low: 2 * time.Minute,
			high:         20 * time.Minute,
			needsCluster: true, begin: func(w *world, h *host, _ time.Duration) func() {
				h.losePower()
				w.after(time.Minute, laneFaults, func() { w.requestRemoval(h) })
				return h.powerUp
			},
		},
		{
			name: "an operator starts a rollout", weight: 2, low: time.Minute, high: 40 * time.Minute,
			needsCluster: true,
			begin: func(w *world, h *host, _ time.Duration) func() {
				req := []control.RolloutRequest{
					{Work: policy.WorkRestart},
					{Work: policy.WorkReboot},
					{Work: policy.WorkCommand, Command: "upgrade"},
				}[w.faults.IntN(3)]
				req.Reason = "a new kernel"
				w.operator(h, func(ctx context.Context, p *process) {
					_, _ = p.agent.StartRollout(ctx, req, "an operator") // the request may be refused
				})
				states := []string{record.RolloutPaused, record.RolloutRunning, record.RolloutAborted}
				first, second := states[w.faults.IntN(3)], states[w.faults.IntN(3)]
				w.after(5*time.Minute, laneFaults, func() {
					if !w.healed {
						w.setRollout(h, first)
					}
				})
				return func() { w.setRollout(h, second) }
			},
		},
	}
}

// requestRemoval lets an operator on another host request the removal of the given host's member, sometimes even if the
// member is live.
func (w *world) requestRemoval(gone *host) {
	m := w.etcd.memberOn(gone)
	if m == nil || w.healed {
		return
	}
	h := w.hosts[(gone.index+1+w.faults.IntN(len(w.hosts)-1))%len(w.hosts)]
	req := control.RemovalRequest{
		Member: record.MemberID(m.id).String(), Reason: "decommissioned", Live: w.faults.IntN(3) == 0,
		For: control.Duration(10 * time.Minute),
	}
	w.operator(h, func(ctx context.Context, p *process) {
		_, err := p.agent.RemoveMember(ctx, req, "an operator")
		w.mu.Lock()
		defer w.mu.Unlock()
		w.event(h, eventFault, uint64(len(req.Member)), "removal of %s on %s requested: %v", req.Member, gone.name,
			err)
	})
}

func (w *world) setRollout(h *host, state string) {
	w.operator(h, func(ctx context.Context, p *process) {
		_, _ = p.agent.SetRollout(ctx, state, "an operator") // there may be no rollout
	})
}

// requestMaintenance lets an operator request maintenance. The returned function lets the operator end it.
func (w *world) requestMaintenance(h *host, req control.MaintenanceRequest) (end func()) {
	req.Reason, req.For = "a new disk", control.Duration(time.Hour)
	h.maintenanceRequested = true
	w.operator(h, func(ctx context.Context, p *process) {
		_, err := p.agent.RequestMaintenance(ctx, req, "an operator")
		w.mu.Lock()
		defer w.mu.Unlock()
		h.workedOn = err == nil && req.Work == policy.WorkMaintenance && !req.KeepRunning
		w.event(h, eventFault, uint64(len(req.Work)), "%s requested: %v", req.Work, err)
	})
	return func() { w.endMaintenance(h) }
}

// endMaintenance lets an operator request the end of the maintenance, again and again until an agent accepts it.
func (w *world) endMaintenance(h *host) {
	h.workedOn, h.interruptible = false, false
	w.operator(h, func(ctx context.Context, p *process) {
		err := p.agent.EndMaintenance(ctx, "an operator")
		w.mu.Lock()
		defer w.mu.Unlock()
		h.maintenanceRequested = h.maintenanceRequested && err != nil
		w.event(h, eventFault, 4, "end of maintenance requested: %v", err)
	})
	// Operators send other requests at the multiples of checkEvery, and an agent processes one request at a time. So
	// this delay is not a multiple.
	w.after(21*time.Second, laneFaults, func() {
		if h.maintenanceRequested {
			w.endMaintenance(h)
		}
	})
}

// hasRequest reports whether a maintenance request that has not ended is recorded on the host's disk.
func (h *host) hasRequest() bool {
	note, err := h.files.read(stateDir + "/maintenance.json")
	return err == nil && bytes.Contains(note, []byte(`"ask":`))
}

// pendingRequest describes a request that has not ended, or a rollout that still runs. It returns "" if there is none.
func (w *world) pendingRequest() string {
	for _, h := range w.hosts {
		if h.hasRequest() && !h.dead {
			return "the maintenance requested for " + h.name + " has not ended"
		}
	}
	if kv := w.etcd.store.Get(w.keys.Rollout()); kv != nil {
		if r, err := record.Decode[record.Rollout](kv.Value); err != nil || r.State == record.RolloutRunning {
			return "a rollout has not ended"
		}
	}
	return ""
}

// machine is an agent's access to its machine.
type machine struct{ p *process }

// CheckReboot always allows a reboot.
func (m machine) CheckReboot(context.Context) error { return nil }

// Reboot checks that the agent may reboot its machine, and reboots it after a delay.
func (m machine) Reboot(context.Context) error {
	m.p.gate(laneStep)
	h, w := m.p.host, m.p.host.world
	w.mu.Lock()
	defer w.mu.Unlock()
	if e := w.promises.currentOp(); !w.promises.justIntruded() &&
		(!e.Of(h.config.Host.ID) || e.Kind != policy.KindCycle) {
		w.promises.breach("P1", h, "a machine is rebooted without an operation of its host")
	}
	switch {
	case h.config.Etcd.Runner == config.RunnerExternal:
		w.promises.checkCanSpare(h, "a reboot stops")
	case h.unit.running && w.etcd.memberOn(h) != nil:
		w.promises.breach("P2", h, "a machine is rebooted while the etcd of its member runs")
	}
	w.after(between(w.draw(40, uint64(h.index)), 100*time.Millisecond, 10*time.Second), laneFaults, func() {
		h.losePower()
		w.after(between(w.draw(41, uint64(h.index)), 20*time.Second, 3*time.Minute), laneFaults, h.powerUp)
	})
	return nil
}

// checkVoterStop checks that a voter's etcd is stopped only by its host's operation, under the lock, with an odd number
// of at least three voters, and while no other voter is down.
func (p *promises) checkVoterStop(by *process, m *member) {
	op := p.currentOp()
	switch {
	case p.justIntruded():
	case !op.Of(by.host.config.Host.ID) || op.Kind != policy.KindCycle:
		p.breach("P2", by.host, "the etcd of a voter is stopped without an operation of its host")
		return
	case p.lockOwner() != by:
		p.breach("P5", by.host, "the etcd of a voter is stopped by an agent that does not hold the lock")
		return
	}
	voters := p.w.etcd.voters()
	if len(voters)%2 == 0 || len(voters) < 3 {
		p.breach("P2", by.host, fmt.Sprintf("the etcd of one of %d voters is stopped", len(voters)))
	}
	for _, o := range voters {
		if down := p.w.now() - o.downAt; o != m && o.downAt != 0 && down > p.staleness() {
			p.breach("P2", by.host, fmt.Sprintf("the etcd of a voter is stopped while voter %s has been down for %s",
				o.host.name, down.Round(time.Second)))
		}
	}
}

// worksOn returns the work for which a host is taken down, or WorkMaintenance if no such operation is in flight.
func (p *promises) worksOn(h *host) policy.Work {
	if op := p.currentOp(); op.Of(h.config.Host.ID) && op.Kind == policy.KindCycle {
		return policy.Work(op.Work)
	}
	return policy.WorkMaintenance
}

// checkStartDuringWork checks that an etcd which was stopped for maintenance is not started while an operator works on
// its host, unless the maintenance is interruptible and may be called off.
func (p *promises) checkStartDuringWork(h *host) {
	switch {
	case !h.workedOn || !h.unit.takenDown || p.worksOn(h) != policy.WorkMaintenance: // etcd is not down for maintenance
	case h.interruptible:
		p.checkCalledOff(h)
	default:
		p.breach("P4", h, "an etcd is started while an operator works on its host")
	}
}
