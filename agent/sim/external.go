// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"context"
	"fmt"
	"time"

	"github.com/quorumd/quorumd/agent/config"
	"github.com/quorumd/quorumd/agent/control"
	"github.com/quorumd/quorumd/agent/policy"
	"github.com/quorumd/quorumd/systemd"
)

// others run etcd on all hosts, as kubelets do. They start an etcd whenever it is down, unless they work on it, and
// stop one if its host is reported safe to touch. They observe nothing else.
type others struct {
	w      *world
	down   map[*host]time.Duration // until when a crashed etcd, or one that they work on, stays down
	works  map[*host]bool          // they work on it
	worked int
}

// runByOthers has others run the etcds of an existing cluster, and simulates them for a while.
func runByOthers(w *world, length time.Duration) (turns int) {
	o := &others{w: w, down: map[*host]time.Duration{}, works: map[*host]bool{}}
	w.mu.Lock()
	for _, h := range w.hosts {
		h.kill()
		h.config.Etcd.Runner = config.RunnerExternal
		h.startAgent()
	}
	w.mu.Unlock()
	const toEnd = 2 * time.Hour // pending requests, and the etcds still to be started
	for end := w.now() + length; w.now() < end+toEnd; {
		w.wait(w.moment(lookEvery, laneFaults))
		w.mu.Lock()
		if w.now() < end {
			o.trouble(w.hosts[w.draw(80)%uint64(len(w.hosts))])
		}
		busy := false
		for _, h := range w.hosts {
			o.look(h)
			busy = busy || h.asked || o.works[h] || !h.unit.process // only the others start it
		}
		w.mu.Unlock()
		if w.now() >= end && !busy {
			break
		}
	}
	return o.worked
}

// trouble is what operators request of a host, and what goes wrong there.
func (o *others) trouble(h *host) {
	w := o.w
	switch drawn := w.draw(81) % 480; {
	case drawn < 20 && !h.asked && !h.noted():
		w.askMaintenance(h, control.MaintenanceRequest{Work: control.WorkMaintenance})
	case drawn < 26 && !h.asked && !h.noted():
		w.askMaintenance(h, control.MaintenanceRequest{Work: control.WorkReboot})
		h.asked = false // it ends by itself
	case drawn < 28 && h.unit.process && !o.works[h]:
		h.unit.exit(failed, "signal")
		o.down[h] = w.now() + between(w.draw(82), time.Second, 5*time.Minute)
	case drawn < 31 && h.agent != nil:
		h.kill()
		w.after(between(w.draw(83), time.Second, 3*time.Minute), laneFaults, h.agentBack)
	}
}

// look is what the others do about one etcd.
func (o *others) look(h *host) {
	w := o.w
	if o.mayWork(h) {
		o.workIfSafe(h)
	}
	switch {
	case !h.powered || w.now() < o.down[h]:
	case o.works[h] && h.unit.ready():
		delete(o.works, h)
		w.endMaintenance(h)
	case !h.unit.process:
		h.unit.start()
	}
}

// workIfSafe has the others query a host's agent, as quorumctl does, and start working if it reports that the host is
// safe to touch. An agent that has just started, or sees no quorum, does not report that, whatever the record contains.
func (o *others) workIfSafe(h *host) {
	w := o.w
	w.operator(h, func(_ context.Context, p *process) {
		m := p.agent.ClusterState().Maintenance
		w.mu.Lock()
		defer w.mu.Unlock()
		if m == nil || m.State != control.MaintenanceSafe || h.agent != p || !h.powered || !o.mayWork(h) {
			return
		}
		o.worked++
		o.works[h] = true
		o.down[h] = w.now() + between(w.draw(84), time.Minute, 10*time.Minute)
		if h.unit.process { // otherwise it has crashed, and is not started before the work is done
			w.promises.spares(h, "others stop")
			h.unit.stop()
		}
	})
}

// mayWork reports whether a query is worthwhile: by the record, the host's operation is in flight.
func (o *others) mayWork(h *host) bool {
	op := o.w.promises.currentOp()
	return h.handsOn && !o.works[h] && h.agent != nil && op.Of(h.config.Host.ID) && op.Kind == policy.KindCycle &&
		op.Phase == string(policy.PhaseDown)
}

// spares checks that the cluster can spare a voter's etcd that others take down because its host was reported safe.
func (p *promises) spares(h *host, what string) {
	for _, o := range p.w.etcd.voters() {
		if down := p.w.now() - o.downAt; o.host != h && o.downAt != 0 && down > p.stale() {
			p.breach("P2", h, fmt.Sprintf("%s the etcd of a voter that is safe to touch while voter %s has been down "+
				"for %s", what, o.host.name, down.Round(time.Second)))
		}
	}
}

// unitOf returns a host's etcd as seen by its agent.
func (h *host) unitOf(p *process) systemd.Unit {
	if h.config.Etcd.Runner == config.RunnerExternal {
		return externalUnit{agentUnit{p, h.unit}}
	}
	return agentUnit{p, h.unit}
}

// externalUnit is an etcd that others run: its agent observes whether its ports are open, and does nothing to it.
type externalUnit struct{ agentUnit }

// Status returns nothing else.
func (l externalUnit) Status(ctx context.Context) (systemd.Status, error) {
	s, err := l.agentUnit.Status(ctx)
	if err != nil || s.State == systemd.Active {
		return s, err
	}
	return systemd.Status{State: inactive, Result: "success", ExitCode: -1, LoadState: "loaded", Since: s.Since}, nil
}

// Start is refused: the others start it.
func (l externalUnit) Start(ctx context.Context) error { return l.refused(ctx, "started") }

// Stop is refused.
func (l externalUnit) Stop(ctx context.Context) error { return l.refused(ctx, "stopped") }

// Restart is refused.
func (l externalUnit) Restart(ctx context.Context) error { return l.refused(ctx, "restarted") }

// SetEnvironment is refused.
func (l externalUnit) SetEnvironment(ctx context.Context, _ map[string]string) error {
	return l.refused(ctx, "given an environment")
}

func (l externalUnit) refused(ctx context.Context, what string) error {
	return l.do(ctx, what, func() {
		l.u.host.world.promises.breach("P4", l.u.host, "an etcd that others run is "+what)
	})
}
