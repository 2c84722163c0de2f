// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"slices"
	"time"

	"github.com/quorumd/quorumd/agent/policy"
	"github.com/quorumd/quorumd/agent/recovery"
)

// disasterRecovery is the operators' state during the recovery from quorum loss. The recovery ends when a cluster
// serves, every member has its data, and no host has a plan in force.
type disasterRecovery struct {
	lost    bool // quorum is lost, and the recovery has not ended
	since   time.Duration
	asked   time.Duration // when facts were last requested
	facts   map[int]recovery.Facts
	plan    *recovery.Plan
	applied map[int]bool
	refused int // attempts to apply the plan since the last success
	plans   int
}

// loseQuorum cuts the power of so many voters that no quorum is left. They return with empty disks. If late is set, one
// of them returns with its data, perhaps after operators have declared it lost. The old cluster cannot continue in
// parallel with a new one, because even with the late voter it has a quorum only until the survivor has moved its own
// data aside. loseQuorum reports whether quorum was lost. It does nothing if the state of the cluster is unsuitable,
// for example if the voters that keep power could not recover it.
func (w *world) loseQuorum(late bool) bool {
	e := w.etcd
	voters := e.voters()
	n := len(voters)
	op := w.promises.currentOp()
	if n < 3 || n%2 == 0 || !e.hasLeader() || w.recovery.lost || len(w.etcds) > 1 ||
		op != nil && op.Kind != policy.KindJoin {
		return false
	}
	shift := int(w.draw(70) % uint64(n))
	voters = slices.Concat(voters[shift:], voters[:shift])
	slices.SortStableFunc(voters, func(a, b *member) int { return boolOrder(a.host.dead, b.host.dead) })
	keep := policy.Quorum(n) - 1
	for _, m := range voters[:keep] {
		if m.host.dead || !m.follows {
			return false
		}
	}
	w.counts.QuorumLosses++
	w.recovery = disasterRecovery{lost: true, since: w.now()}
	w.event(nil, eventFault, 70, "quorum is lost")
	away := voters[keep:]
	for i, m := range away {
		h := m.host
		h.losePower()
		back := between(w.draw(71, uint64(h.index)), 2*time.Minute, 4*time.Hour)
		if i > 0 || !late || h.dead {
			h.loseDisk(chance(w.draw(72, uint64(h.index)), 50))
		}
		w.after(back, laneFaults, h.powerUp)
	}
	w.after(between(w.draw(73), time.Minute, 30*time.Minute), laneFaults, w.advanceRecovery)
	return true
}

// tryQuorumLoss causes quorum loss as soon as loseQuorum allows it, unless the faults have ended by then.
func (w *world) tryQuorumLoss() {
	if !w.healed && !w.loseQuorum(w.plan.LateVoter) {
		w.after(2*time.Minute, laneFaults, w.tryQuorumLoss)
	}
}

// boolOrder compares two values so that false is sorted before true.
func boolOrder(a, b bool) int {
	switch {
	case a == b:
		return 0
	case a:
		return 1
	}
	return -1
}

// loseDisk replaces the etcd disk of a host without power and, if system is set, its system disk.
func (h *host) loseDisk(system bool) {
	h.world.event(h, eventFault, 72, "its etcd disk is lost, its system disk too: %v", system)
	h.data.cluster, h.data.member, h.data.leftovers = 0, 0, false
	h.dataCopy = nil
	if system {
		h.files.lose()
		h.unit.env, h.unit.byOperator, h.workedOn = nil, false, false
	}
}

// etcd returns the cluster that the host's data belongs to, or the current one.
func (h *host) etcd() *etcd {
	for _, e := range h.world.etcds {
		if e.clusterID != 0 && e.clusterID == h.data.cluster {
			return e
		}
	}
	return h.world.etcd
}

// updateEtcds brings the members of every cluster up to date.
func (w *world) updateEtcds() {
	for _, e := range w.etcds {
		e.update()
	}
}

// replaceCluster creates, from the survivor's copy, the cluster that replaces the old one. The survivor is its only
// member.
func (w *world) replaceCluster(h *host, work recovery.Work) {
	old := h.etcd()
	e := &etcd{
		w: w, clusterID: uint64(work.Cluster), removed: map[uint64]*member{}, store: old.store.Restored(1 << 30),
		lockWriter: old.lockWriter, index: old.index, term: old.term, loadTime: old.loadTime, loadTimeAt: w.now(),
		membersChangedAt: w.now(),
		nextID:           old.nextID, predecessor: old, copiedUpTo: h.dataCopy.index,
	}
	m := &member{
		etcd: e, id: uint64(work.Member), host: h, name: h.name, applied: h.dataCopy.index, appliedAt: w.now(),
		downAt: w.now(),
		rate:   w.plan.LearnerRate, peerURL: h.peerURL(),
	}
	e.members = []*member{m}
	w.etcds = append(w.etcds, e)
	for _, id := range e.store.Leases() {
		w.after(e.store.Lease(id).TTL, laneEtcd, func() { e.expire(id) })
	}
}

// startedServing is called when a member of a cluster is ready. It makes a new cluster the current one.
func (w *world) startedServing(e *etcd) {
	if e == w.etcd || slices.Index(w.etcds, e) < slices.Index(w.etcds, w.etcd) {
		return
	}
	w.promises.checkLostWrites(e)
	w.etcd = e
	w.counts.Recoveries++
	w.promises.decoded, w.promises.decodedAt = nil, 0
	w.promises.hostsChanged = w.now()
	w.event(nil, eventEtcd, 70, "etcd: cluster %x continues", e.clusterID)
	w.promises.afterApply()
}
