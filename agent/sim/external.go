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

// externalRunner runs etcd on all hosts, as kubelets and operators do. It starts an etcd that is down as soon as
// downUntil has passed. To work on an etcd, it stops the etcd as soon as the agent reports that this is safe.
type externalRunner struct {
	w          *world
	downUntil  map[*host]time.Duration // until when a crashed or stopped etcd stays down
	workingOn  map[*host]bool          // hosts on which work is in progress
	operations int
}

// runExternalEtcds makes all etcds of an existing cluster external, and simulates their runner for a while. It returns
// the number of times that the runner has worked on an etcd.
func runExternalEtcds(w *world, length time.Duration) (operations int) {
	o := &externalRunner{w: w, downUntil: map[*host]time.Duration{}, workingOn: map[*host]bool{}}
	w.mu.Lock()
	for _, h := range w.hosts {
		h.kill()
		h.config.Etcd.Runner = config.RunnerExternal
		h.startAgent()
	}
	w.mu.Unlock()
	const toEnd = 2 * time.Hour // the maximum time for pending requests to end and for etcds to start
	for end := w.now() + length; w.now() < end+toEnd; {
		w.wait(w.moment(checkEvery, laneFaults))
		w.mu.Lock()
		if w.now() < end {
			o.addTrouble(w.hosts[w.draw(80)%uint64(len(w.hosts))])
		}
		busy := false
		for _, h := range w.hosts {
			o.tend(h)
			busy = busy || h.maintenanceRequested || o.workingOn[h] || !h.unit.running // only the runner starts etcd
		}
		w.mu.Unlock()
		if w.now() >= end && !busy {
			break
		}
	}
	return o.operations
}

// addTrouble makes an operator request maintenance or a reboot, kills an etcd or an agent, or does nothing.
func (o *externalRunner) addTrouble(h *host) {
	w := o.w
	switch drawn := w.draw(81) % 480; {
	case drawn < 20 && !h.maintenanceRequested && !h.hasRequest():
		w.requestMaintenance(h, control.MaintenanceRequest{Work: policy.WorkMaintenance})
	case drawn < 26 && !h.maintenanceRequested && !h.hasRequest():
		w.requestMaintenance(h, control.MaintenanceRequest{Work: policy.WorkReboot})
		h.maintenanceRequested = false // agents end a reboot
	case drawn < 28 && h.unit.running && !o.workingOn[h]:
		h.unit.exit(failed, "signal")
		o.downUntil[h] = w.now() + between(w.draw(82), time.Second, 5*time.Minute)
	case drawn < 31 && h.agent != nil:
		h.kill()
		w.after(between(w.draw(83), time.Second, 3*time.Minute), laneFaults, h.restartAgent)
	}
}

// tend starts a host's etcd if it is down, and begins or ends work on it.
func (o *externalRunner) tend(h *host) {
	w := o.w
	if o.mayWork(h) {
		o.workIfSafe(h)
	}
	switch {
	case !h.powered || w.now() < o.downUntil[h]:
	case o.workingOn[h] && h.unit.ready():
		delete(o.workingOn, h)
		w.endMaintenance(h)
	case !h.unit.running:
		h.unit.start()
	}
}

// workIfSafe queries a host's agent, as quorumctl does, and begins work if the agent reports that the host is safe to
// stop. An agent that has just started or observes no quorum does not report the host as safe, even if the operation
// record does.
func (o *externalRunner) workIfSafe(h *host) {
	w := o.w
	w.operator(h, func(_ context.Context, p *process) {
		m := p.agent.ClusterState().Maintenance
		w.mu.Lock()
		defer w.mu.Unlock()
		if m == nil || m.State != policy.RequestSafe || h.agent != p || !h.powered || !o.mayWork(h) {
			return
		}
		o.operations++
		o.workingOn[h] = true
		o.downUntil[h] = w.now() + between(w.draw(84), time.Minute, 10*time.Minute)
		if h.unit.running { // otherwise the etcd has crashed, and stays down during the work
			w.promises.checkCanSpare(h, "the runner stops")
			h.unit.stop()
		}
	})
}

// mayWork reports whether the runner should query the agent: work is requested, and the operation record shows that the
// host may be taken down.
func (o *externalRunner) mayWork(h *host) bool {
	op := o.w.promises.currentOp()
	return h.workedOn && !o.workingOn[h] && h.agent != nil && op.Of(h.config.Host.ID) && op.Kind == policy.KindCycle &&
		op.Phase == string(policy.PhaseDown)
}

// checkCanSpare checks that no other voter is down when a voter's etcd is stopped because its host was reported safe.
func (p *promises) checkCanSpare(h *host, what string) {
	for _, o := range p.w.etcd.voters() {
		if down := p.w.now() - o.downAt; o.host != h && o.downAt != 0 && down > p.staleness() {
			p.breach("P2", h, fmt.Sprintf("%s the etcd of a voter reported safe to stop while voter %s has been down "+
				"for %s", what, o.host.name, down.Round(time.Second)))
		}
	}
}

// unitFor returns an agent's access to its host's etcd.
func (h *host) unitFor(p *process) systemd.Unit {
	if h.config.Etcd.Runner == config.RunnerExternal {
		return externalUnit{agentUnit{p, h.unit}}
	}
	return agentUnit{p, h.unit}
}

// externalUnit is an agent's access to an external etcd. The agent observes whether the ports of that etcd are open,
// and must not start or stop it.
type externalUnit struct{ agentUnit }

// Status returns active or inactive.
func (u externalUnit) Status(ctx context.Context) (systemd.Status, error) {
	s, err := u.agentUnit.Status(ctx)
	if err != nil || s.State == systemd.Active {
		return s, err
	}
	return systemd.Status{State: inactive, Result: "success", ExitCode: -1, LoadState: "loaded", Since: s.Since}, nil
}

// Start reports a broken promise, because no agent may start an external etcd.
func (u externalUnit) Start(ctx context.Context) error { return u.forbidden(ctx, "started") }

// Stop reports a broken promise, because no agent may stop an external etcd.
func (u externalUnit) Stop(ctx context.Context) error { return u.forbidden(ctx, "stopped") }

// Restart reports a broken promise, because no agent may restart an external etcd.
func (u externalUnit) Restart(ctx context.Context) error { return u.forbidden(ctx, "restarted") }

// SetEnvironment reports a broken promise, because no agent may change the environment of an external etcd.
func (u externalUnit) SetEnvironment(ctx context.Context, _ map[string]string) error {
	return u.forbidden(ctx, "given an environment")
}

func (u externalUnit) forbidden(ctx context.Context, what string) error {
	return u.do(ctx, what, func() {
		u.u.host.world.promises.breach("P4", u.u.host, "an external etcd is "+what)
	})
}
