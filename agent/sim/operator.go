// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"context"
	"time"

	"github.com/quorumd/quorumd/agent/control"
	"github.com/quorumd/quorumd/systemd"
)

func operatorFaults() []fault {
	return []fault{
		{
			name: "an operator pauses the cluster", weight: 2, low: time.Minute, high: 20 * time.Minute,
			begin: func(w *world, h *host, d time.Duration) func() {
				w.operator(h, func(ctx context.Context, p *process) {
					// the request may fail
					_, _ = p.agent.Pause(ctx, control.PauseRequest{
						Reason: "inspection", For: control.Duration(d),
					}, "an operator")
				})
				resumed := w.faults.IntN(2) == 0
				return func() {
					if resumed {
						// the request may fail
						w.operator(h, func(ctx context.Context, p *process) { _ = p.agent.Resume(ctx, "an operator") })
					}
				}
			},
		},
		{
			name: "an operator requests a bootstrap", weight: 2, low: time.Second, high: time.Second,
			begin: func(w *world, h *host, _ time.Duration) func() {
				// before the cluster exists and after quorum loss, a bootstrap on a second host could create a second
				// cluster
				if w.etcd.clusterID != 0 && !w.recovery.lost {
					w.requestBootstrap(h)
				}
				return nil
			},
		},
		{
			name: "an operator requests the status", weight: 2, low: time.Second, high: time.Second,
			begin: func(w *world, h *host, _ time.Duration) func() {
				w.operator(h, func(ctx context.Context, p *process) {
					p.agent.Status()
					_, _ = p.agent.History(ctx, 20) // the request may fail
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
			high: 10 * time.Minute, needsCluster: true, begin: func(w *world, h *host, _ time.Duration) func() {
				var ends []func()
				for _, o := range w.hosts {
					if end := o.stopEtcd(); end != nil {
						ends = append(ends, end)
					}
					if len(o.data.members) == 0 { // a host that was never a member is the most likely to accept
						h = o
					}
				}
				w.after(30*time.Second, laneFaults, func() { w.requestBootstrap(h) })
				return func() {
					for _, end := range ends {
						end()
					}
				}
			},
		},
		{
			name: "an operator removes a member", weight: 3, low: time.Second, high: time.Second, needsCluster: true,
			begin: func(w *world, h *host, _ time.Duration) func() {
				w.removeMember(h)
				return nil
			},
		},
		{
			name: "an operator removes members while the possible replacements are unhealthy", weight: 6,
			low:  3 * time.Minute,
			high: 40 * time.Minute, needsCluster: true, begin: removeAndBlockJoins,
		},
		{
			name: "an operator releases the operation", weight: 1, low: time.Second, high: time.Second,
			begin: func(w *world, h *host, _ time.Duration) func() {
				w.operator(h, func(ctx context.Context, p *process) {
					// there may be no operation to release
					_ = p.agent.ReleaseOp(ctx, control.ReleaseRequest{Reason: "it is stuck"}, "an operator")
				})
				return nil
			},
		},
	}
}

// stopEtcd stops etcd, as an operator does with systemctl. It returns a function that starts it again, or nil if etcd
// does not run.
func (h *host) stopEtcd() (start func()) {
	if !h.unit.running {
		return nil
	}
	h.unit.byOperator = true
	h.unit.stop()
	return func() {
		h.unit.byOperator = false
		h.unit.startAfterStop = h.unit.running && h.unit.state == systemd.Deactivating
		if h.data.member != 0 && h.unit.state == inactive {
			h.unit.start()
		}
	}
}

// removeMember removes a host's voter if all voters are up, as an operator does with etcdctl.
func (w *world) removeMember(h *host) {
	e := w.etcd
	m := e.memberOn(h)
	if m == nil || m.learner || !e.hasLeader() || len(e.voters()) < 2 {
		return
	}
	for _, v := range e.voters() {
		if !e.canCommit(v) || !v.host.unit.ready() {
			return
		}
	}
	if e.checkRemove(e.leader, m.id) == nil {
		e.applyRemove(m.id)
		w.promises.operatorRemovedAt = w.now()
	}
}

// removeAndBlockJoins removes up to two voters. It also keeps most hosts without a member from joining, usually all by
// the same condition (see blockJoin).
func removeAndBlockJoins(w *world, h *host, _ time.Duration) func() {
	w.removeMember(h)
	if w.faults.IntN(2) == 0 {
		w.removeMember(w.hosts[(h.index+1)%len(w.hosts)])
	}
	kind := w.faults.IntN(4)
	var ends []func()
	for _, o := range w.hosts {
		if w.etcd.memberOn(o) != nil || w.faults.IntN(4) == 0 {
			continue
		}
		ends = append(ends, w.blockJoin(o, kind))
		kind = (kind + w.faults.IntN(6)/5) % 4
	}
	return func() {
		for _, end := range ends {
			end()
		}
	}
}

// blockJoin begins a condition that must prevent a host from joining.
func (w *world) blockJoin(h *host, kind int) (end func()) {
	switch kind {
	case 0:
		h.disk.setState(probeDead)
	case 1:
		h.disk.setState(diskSlow)
	case 2:
		h.setWall(time.Minute)
		return func() { h.setWall(0) }
	default:
		h.unit.busHangs = true
		return func() { h.unit.busHangs = false }
	}
	return func() { h.disk.setState(diskFine) }
}
