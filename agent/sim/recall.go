// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/quorumd/quorumd/agent"
	"github.com/quorumd/quorumd/agent/cluster"
	"github.com/quorumd/quorumd/agent/control"
	"github.com/quorumd/quorumd/agent/policy"
)

// drawRecalls reports whether operators request interruptible maintenance, which they do in a third of the clusters
// without quorum loss. It uses its own random numbers, so that all other draws remain the same.
func (p plan) drawRecalls() bool {
	return rand.New(rand.NewPCG(p.Seed, 8)).IntN(3) == 0 && p.LostAt == 0
}

// recallFaults returns the fault in which operators request interruptible maintenance, during which a voter on another
// host often fails.
func recallFaults() []fault {
	return []fault{{
		name: "an operator requests interruptible maintenance", weight: 12, low: 10 * time.Minute, high: time.Hour,
		needsCluster: true,
		begin: func(w *world, h *host, _ time.Duration) func() {
			end := w.requestInterruptible(h)
			if w.faults.IntN(2) == 0 {
				w.after(5*time.Minute, laneFaults, func() { w.failAnother(h, time.Minute) })
			}
			return end
		},
	}}
}

// requestInterruptible lets an operator request maintenance that the agent may call off.
func (w *world) requestInterruptible(h *host) (end func()) {
	h.interruptible = true
	return w.requestMaintenance(h, control.MaintenanceRequest{Work: policy.WorkMaintenance, Interruptible: true})
}

// failAnother cuts the power of another voter's host for a while.
func (w *world) failAnother(h *host, length time.Duration) {
	voters := w.etcd.voters()
	i := slices.IndexFunc(voters, func(m *member) bool { return m.host != h && m.downAt == 0 })
	if w.healed || i < 0 {
		return
	}
	other := voters[i].host
	other.losePower()
	w.after(length, laneFaults, other.powerUp)
}

// checkCalledOff checks that an agent starts etcd during interruptible maintenance only if another voter is down, or a
// link between its host and the agent's host is cut. Either condition may have ended recently, because the agent's view
// may still show it.
func (p *promises) checkCalledOff(h *host) {
	past := p.staleness() + p.w.plan.timing().Settle
	for _, m := range p.w.etcd.voters() {
		there, back := p.w.links[h.index][m.host.index], p.w.links[m.host.index][h.index]
		cut := there.cuts+back.cuts > 0 || p.w.now()-max(there.since, back.since) < past
		if m.host != h && (m.downAt != 0 || p.w.now()-m.upAt < past || cut) {
			p.w.counts.Recalled++
			return
		}
	}
	p.breach("P4", h, "interruptible maintenance is called off although no other voter has failed")
}

// recallMistakes returns the mistakes about interruptible maintenance.
func recallMistakes() []Mistake {
	return []Mistake{
		{
			Name: "a live voter counts as down while etcd is stopped", Promise: "P4", Text: "called off although",
			parts: func(p *process, opt *agent.Options) { opt.Etcd = &liveAsDown{opt.Etcd, p.host} },
			trouble: func(w *world) {
				w.after(5*time.Minute, laneFaults, func() { w.requestInterruptible(w.anyFollower().host) })
			},
		},
	}
}

// liveAsDown shows one live voter as down while etcd on the agent's host is stopped.
type liveAsDown struct {
	cluster.Etcd
	host *host
}

func (l *liveAsDown) Statuses(ctx context.Context, members []cluster.Member) map[uint64]cluster.Status {
	out := l.Etcd.Statuses(ctx, members)
	w := l.host.world
	w.mu.Lock()
	stopped := !l.host.unit.running && l.host.unit.takenDown
	w.mu.Unlock()
	for _, m := range members {
		if s := out[m.ID]; stopped && s.Linearizable {
			out[m.ID] = cluster.Status{Err: errors.New("it counts as down")}
			break
		}
	}
	return out
}
