// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"slices"
	"time"

	"github.com/quorumd/quorumd/agent/policy"
	"github.com/quorumd/quorumd/agent/recovery"
)

// rescue is the recovery of a cluster after quorum loss: the operators' state and actions. It is over when a cluster
// serves and no host has a plan to carry out.
type rescue struct {
	lost    bool // quorum is lost, and the recovery is not over
	since   time.Duration
	asked   time.Duration // when facts were last requested
	facts   map[int]recovery.Facts
	plan    *recovery.Plan
	applied map[int]bool
	refused int
	plans   int
}

// loseQuorum takes away so many voters that no quorum is left: the disks of some and, if late is set, one for so long
// that operators take it for gone. The old cluster never has enough data to continue next to a new one. The late voter
// completes a quorum only until the survivor has moved its own data aside. It reports whether it has done so.
func (w *world) loseQuorum(late bool) bool {
	e := w.etcd
	voters := e.voters()
	n := len(voters)
	op := w.promises.currentOp()
	if n < 3 || n%2 == 0 || !e.leads() || w.rescue.lost || len(w.etcds) > 1 || op != nil && op.Kind != policy.KindJoin {
		return false
	}
	shift := int(w.draw(70) % uint64(n))
	voters = slices.Concat(voters[shift:], voters[:shift])
	slices.SortStableFunc(voters, func(a, b *member) int { return boolOrder(a.host.gone, b.host.gone) })
	keep := policy.Quorum(n) - 1
	for _, m := range voters[:keep] {
		if m.host.gone || !m.follows {
			return false
		}
	}
	w.counts.QuorumLosses++
	w.rescue = rescue{lost: true, since: w.now()}
	w.happen(nil, happenedFault, 70, "quorum is lost")
	away := voters[keep:]
	for i, m := range away {
		h := m.host
		h.losePower()
		back := between(w.draw(71, uint64(h.index)), 2*time.Minute, 4*time.Hour)
		if i > 0 || !late || h.gone {
			h.loseDisk(chance(w.draw(72, uint64(h.index)), 50))
		}
		w.after(back, laneFaults, h.powerUp)
	}
	w.after(between(w.draw(73), time.Minute, 30*time.Minute), laneFaults, w.rescueOn)
	return true
}

// quorumLoss causes quorum loss as soon as that leaves a survivor.
func (w *world) quorumLoss() {
	if !w.healed && !w.loseQuorum(w.plan.Late) {
		w.after(2*time.Minute, laneFaults, w.quorumLoss)
	}
}

// boolOrder sorts false before true.
func boolOrder(a, b bool) int {
	switch {
	case a == b:
		return 0
	case a:
		return 1
	}
	return -1
}

// loseDisk replaces the disk of a host without power, and perhaps its system too.
func (h *host) loseDisk(system bool) {
	h.world.happen(h, happenedFault, 72, "its disk is lost, its system too: %v", system)
	h.data.cluster, h.data.member, h.data.remains = 0, 0, false
	h.copy = nil
	if system {
		h.files.lose()
		h.unit.env, h.unit.stoppedBy, h.handsOn = nil, "", false
	}
}

// etcd returns the cluster that a host's data belong to, or else the serving one.
func (h *host) etcd() *etcd {
	for _, e := range h.world.etcds {
		if e.clusterID != 0 && e.clusterID == h.data.cluster {
			return e
		}
	}
	return h.world.etcd
}

// settle lets the members of every cluster notice a change around them.
func (w *world) settle() {
	for _, e := range w.etcds {
		e.settle()
	}
}

// replaceCluster creates the cluster that replaces another. Its only member is the survivor's.
func (w *world) replaceCluster(h *host, work recovery.Work) {
	old := h.etcd()
	e := &etcd{
		w: w, clusterID: uint64(work.Cluster), removed: map[uint64]*member{}, store: old.store.Restored(1 << 30),
		holder: old.holder, index: old.index, term: old.term, head: old.head, headAt: w.now(), changed: w.now(),
		nextID: old.nextID, from: old, based: h.copy.index,
	}
	m := &member{
		etcd: e, id: uint64(work.Member), host: h, name: h.name, applied: h.copy.index, at: w.now(), downAt: w.now(),
		rate: w.plan.LearnerRate,
	}
	e.members = []*member{m}
	w.etcds = append(w.etcds, e)
	for _, id := range e.store.Leases() {
		w.after(e.store.Lease(id).TTL, laneEtcd, func() { e.expire(id) })
	}
}

// serves is called when a member of a cluster is ready. The first member of a new cluster makes that the current one.
func (w *world) serves(e *etcd) {
	if e == w.etcd || slices.Index(w.etcds, e) < slices.Index(w.etcds, w.etcd) {
		return
	}
	w.promises.lostWrites(e)
	w.etcd = e
	w.counts.Recoveries++
	w.promises.decoded, w.promises.decodedAt = nil, 0
	w.promises.hostsChanged = w.now()
	w.happen(nil, happenedEtcd, 70, "etcd: cluster %x continues", e.clusterID)
	w.promises.afterEffect()
}
