// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"context"
	"fmt"
	"time"

	"github.com/quorumd/quorumd/agent"
	"github.com/quorumd/quorumd/agent/config"
	"github.com/quorumd/quorumd/agent/control"
	"github.com/quorumd/quorumd/agent/policy"
	"github.com/quorumd/quorumd/systemd"
)

// others run etcd on all hosts, as kubelets do: they start one whenever it is down, unless they work on it, and stop
// one where its host is said to be safe to touch. They look at nothing else.
type others struct {
	w      *world
	down   map[*host]time.Duration // until when one stays down that has crashed, or that they work on
	works  map[*host]bool          // they work on it
	worked int
}

// takenByOthers hands the etcds of a cluster that stands over to others, and plays them for a time.
func takenByOthers(w *world, length time.Duration) (turns int) {
	o := &others{w: w, down: map[*host]time.Duration{}, works: map[*host]bool{}}
	w.mu.Lock()
	for _, h := range w.hosts {
		h.kill()
		h.config.Etcd.Runner = config.RunnerExternal
		h.startAgent()
	}
	w.mu.Unlock()
	const toEnd = 2 * time.Hour // what was asked for then, and what they have to start
	for end := w.now() + length; w.now() < end+toEnd; {
		w.wait(w.moment(lookEvery, laneFaults))
		w.mu.Lock()
		if w.now() < end {
			o.trouble(w.hosts[w.draw(80)%uint64(len(w.hosts))])
		}
		busy := false
		for _, h := range w.hosts {
			o.look(h)
			busy = busy || h.asked || o.works[h] || !h.unit.process // nobody else starts it
		}
		w.mu.Unlock()
		if w.now() >= end && !busy {
			break
		}
	}
	return o.worked
}

// trouble is what people want of a host, and what goes wrong there.
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

// look is what others do to one etcd.
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

// workIfSafe has others ask a host's agent, as quorumctl does, and begin their work where it says that the host is safe
// to touch. An agent that has just started, or that sees no quorum, does not say so, whatever the record tells.
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
		if h.unit.process { // else it has crashed, and is not started before the work is over
			w.promises.spares(h, "others stop")
			h.unit.stop()
		}
	})
}

// mayWork reports whether it is worth asking: it is the host's turn, by the record.
func (o *others) mayWork(h *host) bool {
	op := o.w.promises.currentOp()
	return h.handsOn && !o.works[h] && h.agent != nil && op.Of(h.config.Host.ID) && op.Kind == policy.KindCycle &&
		op.Phase == string(policy.PhaseDown)
}

// spares judges that the etcd of a voter goes down on which others have relied to be spared.
func (p *promises) spares(h *host, what string) {
	for _, o := range p.w.etcd.voters() {
		if down := p.w.now() - o.downAt; o.host != h && o.downAt != 0 && down > p.stale() {
			p.breach("P2", h, fmt.Sprintf("%s the etcd of a voter that is safe to touch while voter %s has been down "+
				"for %s", what, o.host.name, down.Round(time.Second)))
		}
	}
}

// unitOf is the etcd of a host as its agent reaches it.
func (h *host) unitOf(p *process) agent.Unit {
	if h.config.Etcd.Runner == config.RunnerExternal {
		return lentUnit{agentUnit{p, h.unit}}
	}
	return agentUnit{p, h.unit}
}

// lentUnit is one that others run: its agent sees whether its ports are open, and does nothing to it.
type lentUnit struct{ agentUnit }

// Status tells no more than that.
func (l lentUnit) Status(ctx context.Context) (systemd.Status, error) {
	s, err := l.agentUnit.Status(ctx)
	if err != nil || s.State == systemd.Active {
		return s, err
	}
	return systemd.Status{State: inactive, Result: "success", ExitCode: -1, LoadState: "loaded", Since: s.Since}, nil
}

// Start is for those who run it, as the others are.
func (l lentUnit) Start(ctx context.Context) error { return l.refused(ctx, "started") }

// Stop is for them.
func (l lentUnit) Stop(ctx context.Context) error { return l.refused(ctx, "stopped") }

// Restart is for them.
func (l lentUnit) Restart(ctx context.Context) error { return l.refused(ctx, "restarted") }

// SetEnvironment is for them.
func (l lentUnit) SetEnvironment(ctx context.Context, _ map[string]string) error {
	return l.refused(ctx, "given an environment")
}

func (l lentUnit) refused(ctx context.Context, what string) error {
	return l.do(ctx, what, func() {
		l.u.host.world.promises.breach("P4", l.u.host, "an etcd that others run is "+what)
	})
}
