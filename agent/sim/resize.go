// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"regexp"
	"slices"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/quorumd/quorumd/agent"
	"github.com/quorumd/quorumd/agent/cluster"
	"github.com/quorumd/quorumd/agent/control"
	"github.com/quorumd/quorumd/agent/policy"
	"github.com/quorumd/quorumd/agent/record"
)

// drawResizes reports whether operators resize the cluster, which they do in a third of the clusters without quorum
// loss. It uses its own random numbers, so that all other draws remain the same.
func (p plan) drawResizes() bool {
	return rand.New(rand.NewPCG(p.Seed, 7)).IntN(3) == 0 && p.LostAt == 0
}

// resizeFaults returns the faults in which operators resize the cluster, retire a host or request a leadership
// transfer, or another client overwrites the size.
func resizeFaults() []fault {
	return []fault{
		{
			name: "an operator retires a host", weight: 6, low: time.Minute, high: time.Hour, needsCluster: true,
			begin: func(w *world, h *host, _ time.Duration) func() {
				by := w.hosts[w.faults.IntN(len(w.hosts))]
				w.retire(by, control.RetireRequest{Host: h.config.Host.ID})
				return func() { w.retire(by, control.RetireRequest{Host: h.config.Host.ID, Undo: true}) }
			},
		},
		{
			name: "a host is lost in maintenance and retired", weight: 6, low: 10 * time.Minute, high: time.Hour,
			needsCluster: true, begin: loseInMaintenance,
		},
		{
			name: "an operator resizes the cluster", weight: 8, low: time.Second, high: time.Second, needsCluster: true,
			begin: func(w *world, h *host, _ time.Duration) func() {
				sizes := []int{1, 3, 5, 7}
				w.resize(h, sizes[w.faults.IntN(len(sizes))])
				return nil
			},
		},
		{
			name: "an operator requests a leadership transfer", weight: 8, low: time.Second, high: time.Second,
			needsCluster: true,
			begin: func(w *world, h *host, _ time.Duration) func() {
				w.transferTo(h, w.hosts[w.faults.IntN(len(w.hosts))])
				return nil
			},
		},
		{
			name: "the size of the cluster is overwritten", weight: 1, low: time.Second, high: time.Second,
			needsCluster: true,
			begin: func(w *world, _ *host, _ time.Duration) func() {
				values := []string{
					`{"version":1,"voters":4}`, `{"version":1,"voters":-1}`, `x`, `{"version":9,"voters":1}`,
				}
				if w.etcd.hasLeader() {
					w.intrude(clientv3.OpPut(w.keys.Size(), values[w.faults.IntN(len(values))]))
				}
				return nil
			},
		},
	}
}

// resize lets an operator resize the cluster. The request may be refused.
func (w *world) resize(h *host, voters int) {
	req := control.ResizeRequest{Voters: voters, Reason: "as planned", WithoutSnapshot: true}
	w.operator(h, func(ctx context.Context, p *process) {
		_, err := p.agent.Resize(ctx, req, "an operator")
		w.mu.Lock()
		defer w.mu.Unlock()
		if err == nil {
			w.counts.Resized++
		}
		w.event(h, eventFault, uint64(voters), "resize to %d voters requested: %v", voters, err)
	})
}

// loseInMaintenance lets an operator request maintenance of a host. If the operation is in flight after a while, the
// host loses power, and an operator retires it as lost. At the end of the fault, the host returns anyway.
func loseInMaintenance(w *world, h *host, d time.Duration) (end func()) {
	by := w.hosts[w.faults.IntN(len(w.hosts))]
	endMaintenance := w.requestMaintenance(h, control.MaintenanceRequest{Work: policy.WorkMaintenance})
	lost, over := false, false
	w.after(d/3, laneFaults, func() {
		if op := w.promises.currentOp(); !over && h.powered && op != nil && op.Host == h.config.Host.ID {
			h.losePower()
			lost = true
		}
	})
	w.after(2*d/3, laneFaults, func() {
		if lost && !over {
			w.retire(by, control.RetireRequest{Host: h.config.Host.ID, Lost: true})
		}
	})
	return func() {
		over = true
		if lost {
			h.powerUp()
		}
		w.retire(by, control.RetireRequest{Host: h.config.Host.ID, Undo: true})
		endMaintenance()
	}
}

// retire lets an operator retire a host or undo its retirement. The request may be refused.
func (w *world) retire(by *host, req control.RetireRequest) {
	req.Reason = "out of warranty"
	w.operator(by, func(ctx context.Context, p *process) {
		_, err := p.agent.Retire(ctx, req, "an operator")
		w.mu.Lock()
		defer w.mu.Unlock()
		switch {
		case err != nil:
		case req.Lost:
			w.counts.Lost++
		default:
			w.counts.Retired++
		}
		w.event(by, eventFault, uint64(len(req.Host)), "retirement of %s requested, lost: %t, undo: %t: %v", req.Host,
			req.Lost, req.Undo, err)
	})
}

// transferTo lets an operator request a leadership transfer to the voter of another host. The request may be refused.
func (w *world) transferTo(h, to *host) {
	req := control.TransferRequest{Host: to.name, Reason: "as planned"}
	w.operator(h, func(ctx context.Context, p *process) {
		t, err := p.agent.TransferLeadership(ctx, req, "an operator")
		w.mu.Lock()
		defer w.mu.Unlock()
		w.event(h, eventFault, uint64(len(t.Steps)), "leadership transfer to %s requested: %v", to.name, err)
	})
}

// resizeBack lets an operator undo a retirement or restore the planned size after the faults have ended. It makes one
// request per call, and does nothing when nothing is left to restore.
func (w *world) resizeBack() {
	i := slices.IndexFunc(w.hosts, func(h *host) bool { return h.agent != nil && h.powered })
	if !w.healed || i < 0 {
		return
	}
	if retired := w.etcd.store.Prefix(w.keys.Retirements()); len(retired) > 0 {
		w.retire(w.hosts[i], control.RetireRequest{
			Host: w.keys.RetiredHost(string(retired[0].Key)), Undo: true,
		})
		return
	}
	if kv := w.etcd.store.Get(w.keys.Size()); kv != nil && (w.size() != w.plan.Voters || !w.sized(kv.Value)) {
		w.resize(w.hosts[i], w.plan.Voters)
	}
}

// sized reports whether a value is a readable size.
func (*world) sized(value []byte) bool {
	s, err := record.Decode[record.Size](value)
	return err == nil && s.Voters > 0
}

// size returns the size of the cluster: the recorded one if it can be read, otherwise the configured one.
func (w *world) size() int {
	kv := w.etcd.store.Get(w.keys.Size())
	if kv == nil || !w.sized(kv.Value) {
		return w.plan.Voters
	}
	s, _ := record.Decode[record.Size](kv.Value)
	return s.Voters
}

// retires reports whether a voter's host is retired, or whether a retirement has changed so recently that an agent may
// not have observed the change.
func (p *promises) retires() bool {
	if p.retiredChanged != 0 && p.w.now()-p.retiredChanged < p.staleness() {
		return true
	}
	for _, m := range p.w.etcd.voters() {
		if p.w.etcd.store.Get(p.w.keys.Retired(m.host.config.Host.ID)) != nil {
			return true
		}
	}
	return false
}

// checkLeave checks a leave when the removal of its voter is applied: the operation belongs to the voter's own host,
// the number of voters exceeds the size, and the other voters are up.
func (p *promises) checkLeave(by *process, m *member, after time.Duration) {
	op := p.currentOp()
	if op == nil || op.Kind != policy.KindLeave || p.overtaken(after) || p.justIntruded() {
		return
	}
	voters := p.w.etcd.voters()
	switch {
	case m.host != by.host || op.Host != by.host.config.Host.ID:
		p.breach("P1", by.host, "the voter on "+m.host.name+" leaves by another host's operation")
	case len(voters) <= p.w.size() && p.w.now()-p.sizeChanged > p.staleness():
		p.breach("P9", by.host, fmt.Sprintf("one of %d voters leaves, and the size is %d", len(voters), p.w.size()))
	}
	for _, o := range voters {
		if down := p.w.now() - o.downAt; o != m && o.downAt != 0 && down > p.staleness() {
			p.breach("P2", by.host, fmt.Sprintf("a voter leaves while voter %s has been down for %s", o.host.name,
				down.Round(time.Second)))
		}
	}
}

// resizeMistakes returns the mistakes about a resized cluster.
func resizeMistakes() []Mistake {
	return []Mistake{
		{
			Name: "the recorded size is misread", Promise: "P9", Text: "leaves, and the size is 5",
			parts: func(_ *process, opt *agent.Options) { opt.Etcd = &misreadSize{opt.Etcd} },
			trouble: func(w *world) {
				w.after(5*time.Minute, laneFaults, func() { w.resize(w.hosts[0], 5) })
			},
		},
		{
			Name: "a voter that is down does not keep others from leaving", Promise: "P2", Text: "leaves while voter",
			parts: func(_ *process, opt *agent.Options) { opt.Etcd = &downAsLive{Etcd: opt.Etcd} },
			trouble: func(w *world) {
				w.after(5*time.Minute, laneFaults, func() {
					w.hosts[1].losePower()
					w.resize(w.hosts[0], 3)
				})
			},
		},
	}
}

// misreadSize reads a recorded size of 5 as 3.
type misreadSize struct{ cluster.Etcd }

func (d *misreadSize) Read(ctx context.Context, spans ...cluster.Span) (cluster.Range, error) {
	out, err := d.Etcd.Read(ctx, spans...)
	voters := regexp.MustCompile(`"voters":5`)
	for i, pair := range out.Pairs {
		if bytes.HasSuffix([]byte(pair.Key), []byte("/size")) {
			out.Pairs[i].Value = voters.ReplaceAll(pair.Value, []byte(`"voters":3`))
		}
	}
	return out, err
}
