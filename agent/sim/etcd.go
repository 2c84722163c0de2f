// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"slices"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"

	"github.com/quorumd/quorumd/agent/sim/keyspace"
)

// etcd is the cluster: what its members have agreed on, and which one leads. Raft is assumed to be correct: there is
// one history, and it grows while a leader has a quorum.
type etcd struct {
	w         *world
	clusterID uint64 // 0 until it is bootstrapped
	members   []*member
	removed   map[uint64]*member
	store     *keyspace.Store
	holder    *process // the last writer of the lock
	leader    *member
	term      uint64
	electing  bool
	index     uint64 // of the log, without the load's entries
	head      time.Duration
	headAt    time.Duration // head counts the time with a leader up to this moment, for the load
	changed   time.Duration // when the member list last changed
	nextID    uint64
	ledAt     time.Duration // when a leader last had a quorum
	from      *etcd         // the cluster that it replaces; nil for the first
	based     uint64        // the last entry of that cluster which it holds
}

// member is a present or former member of the cluster.
type member struct {
	etcd     *etcd
	id       uint64
	host     *host
	name     string // once it has started
	learner  bool
	gone     bool
	upSince  time.Duration // when its process last started to take part
	applied  uint64        // as of at
	term     uint64        // of the last leader that it has heard from
	at       time.Duration
	follows  bool          // it hears from the leader
	lostAt   time.Duration // when it last heard from the leader
	rate     uint64        // entries per second that a learner applies; 0: it is stuck
	promoted time.Duration
	downAt   time.Duration // when it last stopped serving; 0 while it serves
	// reachedAt is since when another serving voter has reached it, 0 if none does; reachedTo is until when one last
	// did.
	reachedAt, reachedTo time.Duration
	received             map[uint64]time.Duration // when it last received something from each other member
}

// The timings of etcd's raft with its defaults, as measured.
const (
	electionLow  = 1000 * time.Millisecond
	electionHigh = 2200 * time.Millisecond
	connectedFor = 5 * time.Second // before a member counts when a change is checked
	fullRate     = 1 << 20
)

// runs reports whether the member's process takes part in raft.
func (m *member) runs() bool {
	h := m.host
	return !m.gone && h.powered && h.unit.process && h.data.is(m) && !h.disk.hangs() && !h.unit.frozen
}

func (e *etcd) voters() []*member {
	return slices.DeleteFunc(slices.Clone(e.members), func(m *member) bool { return m.learner })
}

func (e *etcd) learners() []*member {
	return slices.DeleteFunc(slices.Clone(e.members), func(m *member) bool { return !m.learner })
}

func (e *etcd) find(id uint64) *member {
	i := slices.IndexFunc(e.members, func(m *member) bool { return m.id == id })
	if i < 0 {
		return nil
	}
	return e.members[i]
}

func (e *etcd) on(h *host) *member {
	i := slices.IndexFunc(e.members, func(m *member) bool { return m.host == h })
	if i < 0 {
		return nil
	}
	return e.members[i]
}

// backed reports whether a member hears from a quorum of the voters.
func (e *etcd) backed(m *member) bool {
	voters, with := 0, 0
	for _, v := range e.members {
		if v.learner {
			continue
		}
		voters++
		if v == m || (v.runs() && e.w.linked(m.host, v.host)) {
			with++
		}
	}
	return voters > 0 && 2*with > voters
}

// leads reports whether there is a leader whose writes are being committed.
func (e *etcd) leads() bool {
	l := e.leader
	return l != nil && !l.gone && l.runs() && e.backed(l)
}

// reaches reports whether a member gets its requests committed.
func (e *etcd) reaches(m *member) bool {
	return e.leads() && m.runs() && (m == e.leader || e.w.linked(m.host, e.leader.host))
}

// crawls reports whether every call that needs a quorum times out because of the leader's disk.
func (e *etcd) crawls() bool { return e.leader != nil && e.leader.host.disk.state == diskCrawls }

// settle lets all members notice a change around them. It is called after every change.
func (e *etcd) settle() {
	e.advance()
	if e.leader != nil && !e.leads() {
		e.w.happen(e.leader.host, happenedEtcd, 1, "etcd: %x lost its leadership", e.leader.id)
		e.leader = nil
	}
	if e.leader == nil && !e.electing && e.candidate(0) != nil {
		e.electing = true
		e.w.after(between(e.w.draw(1), electionLow, electionHigh), laneEtcd, e.elect)
	}
	for _, m := range e.members {
		follows := e.leader != nil && e.reaches(m)
		if m.follows && !follows {
			m.lostAt = e.w.now()
		}
		m.follows = follows
		switch serves := follows && m.host.unit.ready(); {
		case serves:
			m.downAt = 0
		case m.downAt == 0:
			m.downAt = e.w.now()
		}
	}
	if e.w.plan.Dead > 0 {
		for _, m := range e.members {
			m.reachedBy(e.w)
		}
	}
	e.w.promises.oneServes()
}

// candidate returns a voter that can win an election.
func (e *etcd) candidate(from uint64) *member {
	voters := e.voters()
	for i := range voters {
		m := voters[(uint64(i)+from)%uint64(len(voters))]
		if m.runs() && e.backed(m) {
			return m
		}
	}
	return nil
}

// elect makes a member the leader. Every lease gets its full time again.
func (e *etcd) elect() {
	e.electing = false
	m := e.candidate(e.w.draw(2) % lanes)
	if m == nil {
		e.settle()
		return
	}
	e.lead(m)
	e.settle()
}

func (e *etcd) lead(m *member) {
	e.advance()
	e.leader = m
	e.term++
	e.index++
	e.w.counts.Elections++
	e.w.happen(m.host, happenedEtcd, e.term, "etcd: %x leads in term %d", m.id, e.term)
	e.store.RenewAll()
}

// advance brings every member's log up to now.
func (e *etcd) advance() {
	now := e.w.now()
	if e.leads() {
		e.head += now - e.headAt
		e.ledAt = now
	}
	e.headAt = now
	head := e.last()
	for _, m := range e.members {
		switch {
		case !m.follows:
		case !m.learner:
			m.applied, m.term = head, e.term
		default:
			m.term = e.term
			m.applied = min(head, m.applied+uint64((now-m.at).Seconds()*float64(m.rate)))
		}
		m.at = now
	}
}

// last returns the index of the last entry.
func (e *etcd) last() uint64 {
	return e.index + uint64(e.head.Seconds()*float64(e.w.plan.Load))
}

// expire ends a lease when it is due.
func (e *etcd) expire(id int64) {
	l := e.store.Lease(id)
	if l == nil {
		return
	}
	left := time.Until(l.Ends)
	if left <= 0 && e.leads() {
		keys, _ := e.store.Revoke(id) // it was just found
		e.index++
		e.w.happen(nil, happenedEtcd, uint64(id), "etcd: lease %d has run out: %v", id, keys)
		e.w.promises.hostsChanged = e.w.now()
		e.w.promises.afterEffect()
		return
	}
	if left <= 0 {
		left = time.Second // without a leader it does not expire: the next one restarts it
	}
	e.w.after(left, laneEtcd, func() { e.expire(id) })
}

// bootstrap makes the cluster with its first member alone.
func (e *etcd) bootstrap(h *host) *member {
	m := e.newMember(h)
	m.name = h.name
	e.clusterID = m.id ^ 0xc105
	e.members = append(e.members, m)
	e.changed = e.w.now()
	return m
}

func (e *etcd) newMember(h *host) *member {
	e.nextID++
	return &member{
		etcd: e, id: mix(e.nextID, e.w.plan.Seed) | 1, host: h, at: e.w.now(), downAt: e.w.now(),
		rate: e.w.plan.LearnerRate,
	}
}

// strict is etcd's check before a member is added: enough voters must have been connected for 5 s to the member that
// serves the request.
func (e *etcd) strict(asked *member) bool {
	voters := e.voters()
	if len(voters) == 1 {
		return true
	}
	connected := 0
	for _, v := range voters {
		if v == asked || e.w.linkedFor(asked, v) >= connectedFor {
			connected++
		}
	}
	return connected >= (len(voters)+1)/2+1
}

// addLearner asks a member to add a learner, with the checks made on receipt.
func (e *etcd) addLearner(asked *member, h *host) error {
	switch {
	case len(e.learners()) > 0:
		return rpctypes.ErrGRPCTooManyLearners
	case e.on(h) != nil:
		return rpctypes.ErrGRPCPeerURLExist
	case !e.strict(asked):
		return rpctypes.ErrGRPCUnhealthy
	}
	return nil
}

// applyAdd adds the learner. Every member repeats the checks that are made on apply.
func (e *etcd) applyAdd(h *host) {
	if e.on(h) != nil || len(e.learners()) > 0 {
		return
	}
	m := e.newMember(h)
	m.learner = true
	if h.stuck {
		m.rate = 0
	}
	e.members = append(e.members, m)
	slices.SortFunc(e.members, func(a, b *member) int {
		if a.id < b.id {
			return -1
		}
		return 1
	})
	e.listChanged(h, 3, "etcd: learner %x was added", m.id)
}

// promote asks the leader. etcd compares indices and nothing else.
func (e *etcd) promote(id uint64) error {
	e.advance()
	m := e.find(id)
	switch {
	case m == nil:
		return rpctypes.ErrGRPCMemberNotFound
	case !m.learner:
		return rpctypes.ErrGRPCMemberNotLearner
	case m.name == "" || float64(m.applied) < 0.9*float64(e.last()):
		return rpctypes.ErrGRPCLearnerNotReady
	}
	return nil
}

func (e *etcd) applyPromote(id uint64) {
	m := e.find(id)
	if m == nil || !m.learner {
		return
	}
	m.learner, m.promoted = false, e.w.now()
	e.w.counts.Promoted++
	e.listChanged(m.host, 4, "etcd: %x was promoted", id)
}

// moveLeader asks a member to transfer leadership.
func (e *etcd) moveLeader(asked *member, to uint64) error {
	m := e.find(to)
	switch {
	case asked != e.leader:
		return rpctypes.ErrGRPCNotLeader
	case m == nil || m.learner:
		return rpctypes.ErrGRPCBadLeaderTransferee
	case !e.reaches(m) || !e.backed(m):
		return rpctypes.ErrGRPCTimeout
	}
	return nil
}

// remove asks a member to remove another.
func (e *etcd) remove(asked *member, id uint64) error {
	m := e.find(id)
	switch {
	case m == nil:
		return rpctypes.ErrGRPCMemberNotFound
	case m.learner || e.w.linkedFor(asked, m) == 0:
		return nil
	}
	connected := 0
	for _, v := range e.voters() {
		if v == asked || e.w.linkedFor(asked, v) >= connectedFor {
			connected++
		}
	}
	if n := len(e.voters()); n == 1 || connected-1 < 1+(n-1)/2 {
		return rpctypes.ErrGRPCUnhealthy
	}
	return nil
}

func (e *etcd) applyRemove(id uint64) {
	m := e.find(id)
	if m == nil {
		return
	}
	m.gone = true
	e.removed[id] = m
	e.members = slices.DeleteFunc(e.members, func(o *member) bool { return o == m })
	e.listChanged(m.host, 5, "etcd: %x was removed", id)
	m.host.unit.look()
}

func (e *etcd) listChanged(h *host, what uint64, text string, id uint64) {
	e.index++
	e.w.counts.Changes++
	e.changed = e.w.now()
	e.w.happen(h, happenedEtcd, what, text, id)
	e.settle()
}
