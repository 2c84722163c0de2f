// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"cmp"
	"slices"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"

	"github.com/quorumd/quorumd/agent/sim/keyspace"
)

// etcd is a cluster: its committed state and its leader. Raft is assumed to be correct: there is one log, and it grows
// while a leader has a quorum.
type etcd struct {
	w                *world
	clusterID        uint64 // 0 until the cluster is bootstrapped
	members          []*member
	removed          map[uint64]*member
	store            *keyspace.Store
	lockWriter       *process // the last writer of the lock
	leader           *member
	term             uint64
	electing         bool
	index            uint64        // index of the last entry, without the entries of the load
	loadTime         time.Duration // how long there has been a leader that commits the load
	loadTimeAt       time.Duration // the time up to which loadTime was counted
	membersChangedAt time.Duration // when the member list last changed
	nextID           uint64
	lastLedAt        time.Duration // when a leader last had a quorum
	predecessor      *etcd         // the cluster that this one replaces; nil for the first cluster
	copiedUpTo       uint64        // the last entry of the replaced cluster that this one contains
}

// member is a present or former member of the cluster.
type member struct {
	etcd           *etcd
	id             uint64
	host           *host
	name           string // empty until the member has started
	peerURL        string // as registered in the member list
	learner        bool
	removed        bool
	upSince        time.Duration // when the member's process last started to take part in raft
	applied        uint64        // the log index applied at appliedAt
	term           uint64        // term of the last leader that the member followed
	appliedAt      time.Duration
	follows        bool          // the member leads, or follows the leader
	lastFollowedAt time.Duration // when the member last followed a leader
	rate           uint64        // entries per second that a learner applies; 0 if it is stuck
	promotedAt     time.Duration
	downAt         time.Duration // when the member last stopped serving; 0 while it serves
	upAt           time.Duration // when the member last began to serve
	// Since reachedAt, at least one other serving voter has reached the member's ports; 0 if none reaches them now.
	// reachedTo is when the last such period that agents could observe ended.
	reachedAt, reachedTo time.Duration
	received             map[uint64]time.Duration // when the member last received a message, by sender
	urlAt                time.Duration            // when a peer URL at which it was reachable was last replaced
	unverified           bool                     // its peer URL was replaced, and the new one has not worked yet
	lateURL              bool                     // the URL was registered so late that no agent could prevent it
}

// The measured timings of etcd with default settings, and the rate of a learner that catches up without delay.
const (
	electionLow  = 1000 * time.Millisecond
	electionHigh = 2200 * time.Millisecond
	connectedFor = 5 * time.Second // minimum age of a connection for etcd to count it in its checks
	fullRate     = 1 << 20
)

// runs reports whether the member's process takes part in raft.
func (m *member) runs() bool {
	h := m.host
	return !m.removed && h.powered && h.unit.running && h.data.belongsTo(m) && !h.disk.hangs() && !h.unit.frozen
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

func (e *etcd) memberOn(h *host) *member {
	i := slices.IndexFunc(e.members, func(m *member) bool { return m.host == h })
	if i < 0 {
		return nil
	}
	return e.members[i]
}

// hasQuorum reports whether a member is connected to a quorum of the voters.
func (e *etcd) hasQuorum(m *member) bool {
	voters, with := 0, 0
	for _, v := range e.members {
		if v.learner {
			continue
		}
		voters++
		if v == m || (v.runs() && e.w.connected(m, v)) {
			with++
		}
	}
	return voters > 0 && 2*with > voters
}

// hasLeader reports whether there is a leader that commits writes.
func (e *etcd) hasLeader() bool {
	l := e.leader
	return l != nil && !l.removed && l.runs() && e.hasQuorum(l)
}

// canCommit reports whether requests to a member are committed.
func (e *etcd) canCommit(m *member) bool {
	return e.hasLeader() && m.runs() && (m == e.leader || e.w.connected(m, e.leader))
}

// leaderTooSlow reports whether the leader's disk is so slow that every call that needs a quorum times out.
func (e *etcd) leaderTooSlow() bool { return e.leader != nil && e.leader.host.disk.state == diskCrawls }

// update brings the leader and the state of all members up to date. It is called after every change that may affect
// them.
func (e *etcd) update() {
	e.advance()
	if e.leader != nil && !e.hasLeader() {
		e.w.event(e.leader.host, eventEtcd, 1, "etcd: %x lost its leadership", e.leader.id)
		e.leader = nil
	}
	if e.leader == nil && !e.electing && e.candidate(0) != nil {
		e.electing = true
		e.w.after(between(e.w.draw(1), electionLow, electionHigh), laneEtcd, e.elect)
	}
	for _, m := range e.members {
		follows := e.leader != nil && e.canCommit(m)
		if m.follows && !follows {
			m.lastFollowedAt = e.w.now()
		}
		m.follows = follows
		switch serves := follows && m.host.unit.ready(); {
		case serves && m.downAt != 0:
			m.downAt, m.upAt = 0, e.w.now()
		case serves:
		case m.downAt == 0:
			m.downAt = e.w.now()
		}
	}
	if e.w.plan.Dead > 0 {
		for _, m := range e.members {
			m.updateReached(e.w)
		}
	}
	e.verifyURLs()
	e.w.promises.checkOneServes()
}

// candidate returns a voter that can win an election, or nil. The search begins at position from.
func (e *etcd) candidate(from uint64) *member {
	voters := e.voters()
	for i := range voters {
		m := voters[(uint64(i)+from)%uint64(len(voters))]
		if m.runs() && e.hasQuorum(m) {
			return m
		}
	}
	return nil
}

// elect makes a candidate the leader, if there is one.
func (e *etcd) elect() {
	e.electing = false
	m := e.candidate(e.w.draw(2) % lanes)
	if m == nil {
		e.update()
		return
	}
	e.setLeader(m)
	e.update()
}

// setLeader makes a member the leader, which restarts every lease.
func (e *etcd) setLeader(m *member) {
	e.advance()
	e.leader = m
	e.term++
	e.index++
	e.w.counts.Elections++
	e.w.event(m.host, eventEtcd, e.term, "etcd: %x leads in term %d", m.id, e.term)
	e.store.RenewAll()
}

// advance brings every member's log up to date.
func (e *etcd) advance() {
	now := e.w.now()
	if e.hasLeader() {
		e.loadTime += now - e.loadTimeAt
		e.lastLedAt = now
	}
	e.loadTimeAt = now
	head := e.lastIndex()
	for _, m := range e.members {
		switch {
		case !m.follows:
		case !m.learner:
			m.applied, m.term = head, e.term
		default:
			m.term = e.term
			m.applied = min(head, m.applied+uint64((now-m.appliedAt).Seconds()*float64(m.rate)))
		}
		m.appliedAt = now
	}
}

// lastIndex returns the index of the last entry.
func (e *etcd) lastIndex() uint64 {
	return e.index + uint64(e.loadTime.Seconds()*float64(e.w.plan.Load))
}

// expire ends a lease that is due, or checks it again later.
func (e *etcd) expire(id int64) {
	l := e.store.Lease(id)
	if l == nil {
		return
	}
	left := time.Until(l.Ends)
	if left <= 0 && e.hasLeader() {
		keys, _ := e.store.Revoke(id) // the lease was looked up above
		e.index++
		e.w.event(nil, eventEtcd, uint64(id), "etcd: lease %d has expired: %v", id, keys)
		e.w.promises.hostsChanged = e.w.now()
		e.w.promises.afterApply()
		return
	}
	if left <= 0 {
		left = time.Second // no lease expires without a leader, and the next leader restarts it
	}
	e.w.after(left, laneEtcd, func() { e.expire(id) })
}

// bootstrap creates the cluster with its first member.
func (e *etcd) bootstrap(h *host) *member {
	m := e.newMember(h, cmp.Or(h.unit.env["ETCD_INITIAL_ADVERTISE_PEER_URLS"], h.peerURL()))
	m.name = h.name
	e.clusterID = m.id ^ 0xc105
	e.members = append(e.members, m)
	e.membersChangedAt = e.w.now()
	return m
}

func (e *etcd) newMember(h *host, peerURL string) *member {
	e.nextID++
	return &member{
		etcd: e, id: mix(e.nextID, e.w.plan.Seed) | 1, host: h, appliedAt: e.w.now(), downAt: e.w.now(),
		rate: e.w.plan.LearnerRate, peerURL: peerURL,
	}
}

// passesStrictCheck reports whether the strict check that etcd makes before it adds a member passes: enough voters must
// have been connected to the queried member for 5 s.
func (e *etcd) passesStrictCheck(asked *member) bool {
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

// checkAdd returns the error of the checks that the queried member makes before a learner is added.
func (e *etcd) checkAdd(asked *member, h *host, peerURL string) error {
	switch {
	case len(e.learners()) >= e.w.plan.maxLearners():
		return rpctypes.ErrGRPCTooManyLearners
	case e.memberOn(h) != nil || e.memberAt(peerURL) != nil:
		return rpctypes.ErrGRPCPeerURLExist
	case !e.passesStrictCheck(asked):
		return rpctypes.ErrGRPCUnhealthy
	}
	return nil
}

// applyAdd adds the learner, unless the checks that every member makes when it applies the change fail.
func (e *etcd) applyAdd(h *host, peerURL string) {
	if e.memberOn(h) != nil || e.memberAt(peerURL) != nil || len(e.learners()) >= e.w.plan.maxLearners() {
		return
	}
	m := e.newMember(h, peerURL)
	m.learner = true
	if h.learnerStuck {
		m.rate = 0
	}
	e.members = append(e.members, m)
	slices.SortFunc(e.members, func(a, b *member) int {
		if a.id < b.id {
			return -1
		}
		return 1
	})
	e.membersChanged(h, 3, "etcd: learner %x was added", m.id)
}

// checkPromote returns the error of the leader's checks before a promotion. To decide whether a learner has caught up,
// etcd compares only indices.
func (e *etcd) checkPromote(id uint64) error {
	e.advance()
	m := e.find(id)
	switch {
	case m == nil:
		return rpctypes.ErrGRPCMemberNotFound
	case !m.learner:
		return rpctypes.ErrGRPCMemberNotLearner
	case m.name == "" || float64(m.applied) < 0.9*float64(e.lastIndex()):
		return rpctypes.ErrGRPCLearnerNotReady
	}
	return nil
}

func (e *etcd) applyPromote(id uint64) {
	m := e.find(id)
	if m == nil || !m.learner {
		return
	}
	m.learner, m.promotedAt = false, e.w.now()
	e.w.counts.Promoted++
	e.membersChanged(m.host, 4, "etcd: %x was promoted", id)
}

// checkMoveLeader returns the error of the queried member's checks before a leadership transfer.
func (e *etcd) checkMoveLeader(asked *member, to uint64) error {
	m := e.find(to)
	switch {
	case asked != e.leader:
		return rpctypes.ErrGRPCNotLeader
	case m == nil || m.learner:
		return rpctypes.ErrGRPCBadLeaderTransferee
	case !e.canCommit(m) || !e.hasQuorum(m):
		return rpctypes.ErrGRPCTimeout
	}
	return nil
}

// checkRemove returns the error of the queried member's checks before a removal.
func (e *etcd) checkRemove(asked *member, id uint64) error {
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
	m.removed = true
	e.removed[id] = m
	e.members = slices.DeleteFunc(e.members, func(o *member) bool { return o == m })
	e.membersChanged(m.host, 5, "etcd: %x was removed", id)
	m.host.unit.exitIfRemoved()
}

func (e *etcd) membersChanged(h *host, what uint64, text string, id uint64) {
	e.index++
	e.w.counts.Changes++
	e.membersChangedAt = e.w.now()
	e.w.event(h, eventEtcd, what, text, id)
	e.update()
}
