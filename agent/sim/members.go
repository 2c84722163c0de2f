// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"context"
	"errors"
	"fmt"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"

	"github.com/quorumd/quorumd/agent/cluster"
)

// header returns the header of a member's answers.
func (e *etcd) header(m *member) *pb.ResponseHeader {
	return &pb.ResponseHeader{ClusterId: e.clusterID, MemberId: m.id, RaftTerm: e.term, Revision: e.store.Revision()}
}

// memberList returns the members as etcd lists them.
func (e *etcd) memberList() (out []*pb.Member) {
	for _, m := range e.members {
		entry := &pb.Member{ID: m.id, Name: m.name, PeerURLs: []string{m.peerURL}, IsLearner: m.learner}
		if m.name != "" {
			entry.ClientURLs = []string{m.host.clientURL()}
		}
		out = append(out, entry)
	}
	return out
}

// Statuses returns the status of all members, each with a linearizable read. It bypasses the real client, whose
// requests are concurrent. Here all members answer at the same moment, which halves the time of a simulation.
func (c *client) Statuses(_ context.Context, members []cluster.Member) map[uint64]cluster.Status {
	return c.queryAll(members, true)
}

// Answers returns the status of all members, without reads.
func (c *client) Answers(_ context.Context, members []cluster.Member) map[uint64]cluster.Status {
	return c.queryAll(members, false)
}

func (c *client) queryAll(members []cluster.Member, read bool) map[uint64]cluster.Status {
	p, w := c.p, c.p.host.world
	p.gateWithTrap(laneLoop, "status", true)
	l := p.host.lane(laneLoop)
	bound := w.now() + p.host.config.Timing.CallTimeout
	w.wait(w.moment(w.travelTime(p.host, p.host, call{name: "status"}), l))
	w.mu.Lock()
	w.counts.Calls += len(members)
	for _, e := range w.etcds {
		e.advance()
	}
	out := make(map[uint64]cluster.Status, len(members))
	var waits time.Duration
	for _, m := range members {
		s, hung := c.status(m)
		s.Linearizable = s.Linearizable && read
		out[m.ID] = s
		if hung && (read || s.Err != nil) {
			waits = bound
		}
	}
	w.mu.Unlock()
	if waits > w.now() {
		w.wait(w.moment(waits+timeoutDelay(w, l)-w.now(), l))
	}
	p.gateWithTrap(laneLoop, "status", false)
	return out
}

// status returns one member's answer. hung reports whether the caller waits until its timeout.
func (c *client) status(asked cluster.Member) (s cluster.Status, hung bool) {
	w, from := c.p.host.world, c.p.host
	if len(asked.ClientURLs) == 0 {
		return cluster.Status{Err: errors.New("it has never started")}, false
	}
	to := w.hostByClientURL(asked.ClientURLs[0])
	if !w.linked(from, to) {
		return cluster.Status{Err: errTimeout}, true
	}
	if !to.unit.running {
		return cluster.Status{Err: errRefused}, false
	}
	m := to.unit.member()
	if m == nil || !to.unit.ready() || to.disk.hangs() {
		return cluster.Status{Err: errTimeout}, true
	}
	e := m.etcd
	s = cluster.Status{
		MemberID: m.id, ClusterID: e.clusterID, Term: e.term, Applied: m.applied, Index: m.applied,
		Learner: asked.Learner && m.learner, Version: etcdVersion, DBSize: 20 << 20,
	}
	switch {
	case m.follows:
		s.Leader, s.Index = e.leader.id, e.lastIndex()
	case m.learner && e.leader != nil:
		s.Leader, s.Term = e.leader.id, e.term // a learner does not detect that it has lost the leader
	case w.now()-m.lastFollowedAt < electionLow && e.leader != nil:
		s.Leader = e.leader.id
	default:
		s.Term--
	}
	s.Linearizable = !asked.Learner && e.canCommit(m) && !e.leaderTooSlow()
	return s, !asked.Learner && !s.Linearizable
}

// membership returns the call for a request about members. The promises are checked when a change is about to be sent,
// and again when it is applied.
func (c *client) membership(ctx context.Context, req, reply any) call {
	w := c.p.host.world
	sent, name := w.now(), c.stepName(ctx)
	change := func(what string, check func(*member) error, apply func(e *etcd, after time.Duration)) call {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.promises.beforeChange(c.p, what)
		return call{name: name, lane: laneStep, write: true, check: check, apply: func(m *member) error {
			apply(m.etcd, w.now()-sent)
			return nil
		}}
	}
	switch req := req.(type) {
	case *pb.MemberListRequest:
		return call{name: "members", lane: c.lane(ctx), apply: func(m *member) error {
			out := reply.(*pb.MemberListResponse)
			out.Header, out.Members = m.etcd.header(m), m.etcd.memberList()
			return nil
		}}
	case *pb.MemberAddRequest:
		url := req.PeerURLs[0]
		check := func(m *member) error { return m.etcd.checkAdd(m, w.hostByPeerURL(url), url) }
		return change("add", check, func(e *etcd, after time.Duration) {
			w.promises.beforeAdd(c.p, after)
			e.applyAdd(w.hostByPeerURL(url), url)
		})
	case *pb.MemberUpdateRequest:
		check := func(m *member) error { return m.etcd.checkUpdate(req.ID, req.PeerURLs[0]) }
		return change("update", check, func(e *etcd, after time.Duration) {
			e.applyUpdate(c.p, req.ID, req.PeerURLs[0], after)
		})
	case *pb.MemberPromoteRequest:
		check := func(m *member) error { return m.etcd.checkPromote(req.ID) }
		return change("promote", check, func(e *etcd, after time.Duration) {
			w.promises.beforePromote(c.p, req.ID, after)
			e.applyPromote(req.ID)
		})
	case *pb.MemberRemoveRequest:
		judge := w.promises.beforeRemove
		if name == "remove member" {
			judge = w.promises.beforeRemoval
			w.mu.Lock()
			w.promises.beforeReplacement(c.p, req.ID)
			w.mu.Unlock()
		}
		check := func(m *member) error { return m.etcd.checkRemove(m, req.ID) }
		return change("remove", check, func(e *etcd, after time.Duration) {
			judge(c.p, req.ID, after)
			e.applyRemove(req.ID)
		})
	case *pb.MoveLeaderRequest:
		return call{
			name: "move leader", lane: laneStep, write: true,
			check: func(asked *member) error { return asked.etcd.checkMoveLeader(asked, req.TargetID) },
			apply: func(asked *member) error {
				e := asked.etcd
				if m := e.find(req.TargetID); m != nil && m != e.leader {
					e.setLeader(m)
					e.update()
				}
				return nil
			},
		}
	}
	panic(fmt.Sprintf("the simulated etcd does not support %T", req))
}
