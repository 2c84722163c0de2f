// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/quorumd/quorumd/agent/cluster"
)

func (c *client) list() cluster.Membership {
	e := c.p.host.world.etcd
	out := cluster.Membership{ClusterID: e.clusterID, Members: make([]cluster.Member, 0, len(e.members))}
	c.voters = c.voters[:0:0]
	for _, m := range e.members {
		entry := cluster.Member{ID: m.id, Name: m.name, PeerURLs: []string{m.host.peerURL()}, Learner: m.learner}
		if m.name != "" {
			entry.ClientURLs = []string{m.host.clientURL()}
		}
		if !m.learner {
			c.voters = append(c.voters, m.host)
		}
		out.Members = append(out.Members, entry)
	}
	return out
}

// Members reads the member list.
func (c *client) Members(ctx context.Context) (cluster.Membership, error) {
	return c.membersOn(ctx, laneLoop)
}

func (c *client) membersOn(ctx context.Context, l lane) (cluster.Membership, error) {
	var out cluster.Membership
	err := c.ask(ctx, call{name: "members", lane: l, apply: func(*member) error {
		out = c.list()
		return nil
	}})
	return out, err
}

// Statuses asks members about themselves, all at once.
func (c *client) Statuses(_ context.Context, members []cluster.Member) map[uint64]cluster.Status {
	p, w := c.p, c.p.host.world
	p.pass(laneLoop, "status", true)
	l := p.host.lane(laneLoop)
	bound := w.now() + p.host.config.Timing.CallTimeout
	w.wait(w.moment(w.travel(p.host, call{name: "status"}), l))
	w.mu.Lock()
	w.counts.Calls += len(members)
	w.etcd.advance()
	out := make(map[uint64]cluster.Status, len(members))
	var waits time.Duration
	for _, m := range members {
		s, hung := c.status(m)
		out[m.ID] = s
		if hung {
			waits = bound
		}
	}
	w.mu.Unlock()
	if waits > w.now() {
		w.wait(w.moment(waits+give(w, l)-w.now(), l))
	}
	p.pass(laneLoop, "status", false)
	return out
}

// status is one member's answer; hung says that it has let the caller wait.
func (c *client) status(asked cluster.Member) (s cluster.Status, hung bool) {
	w, from := c.p.host.world, c.p.host
	if len(asked.ClientURLs) == 0 {
		return cluster.Status{Err: errors.New("it has never started")}, false
	}
	i := slices.IndexFunc(w.hosts, func(h *host) bool { return h.clientURL() == asked.ClientURLs[0] })
	to := w.hosts[i]
	if !w.linked(from, to) {
		return cluster.Status{Err: errTimeout}, true
	}
	if !to.unit.process {
		return cluster.Status{Err: errRefused}, false
	}
	m := to.unit.member()
	if m == nil || !to.unit.ready() || to.disk.hangs() {
		return cluster.Status{Err: errTimeout}, true
	}
	e := w.etcd
	s = cluster.Status{
		MemberID: m.id, ClusterID: e.clusterID, Term: e.term, Applied: m.applied, Index: m.applied,
		Learner: asked.Learner && m.learner, Version: etcdVersion, DBSize: 20 << 20,
	}
	switch {
	case m.follows:
		s.Leader, s.Index = e.leader.id, e.last()
	case m.learner && e.leader != nil:
		s.Leader, s.Term = e.leader.id, e.term // it never notices
	case w.now()-m.lostAt < electionLow && e.leader != nil:
		s.Leader = e.leader.id
	default:
		s.Term--
	}
	s.Linearizable = !asked.Learner && e.reaches(m)
	return s, !asked.Learner && !s.Linearizable
}

// AddLearner adds a learner, as the real client does: it looks, asks, and looks again.
func (c *client) AddLearner(ctx context.Context, peerURL string) (cluster.Member, error) {
	w := c.p.host.world
	i := slices.IndexFunc(w.hosts, func(h *host) bool { return h.peerURL() == peerURL })
	list, err := c.membersOn(ctx, laneStep)
	if err != nil {
		return cluster.Member{}, err
	}
	if m, ok := list.ByPeerURL(peerURL); ok {
		return m, nil
	}
	c.changes("add")
	sent := w.now()
	addErr := c.tell(ctx, call{
		name: "add learner", lane: laneStep, write: true,
		check: func(m *member) error { return w.etcd.addLearner(m, w.hosts[i]) },
		apply: func(*member) error {
			w.promises.beforeAdd(c.p, w.now()-sent)
			w.etcd.applyAdd(w.hosts[i])
			return nil
		},
	})
	if list, err = c.membersOn(ctx, laneStep); err != nil {
		return cluster.Member{}, errors.Join(addErr, err)
	}
	m, ok := list.ByPeerURL(peerURL)
	switch {
	case ok:
		return m, nil
	case addErr != nil:
		return cluster.Member{}, fmt.Errorf("cannot add a learner: %w", addErr)
	}
	return cluster.Member{}, cluster.ErrNotListed
}

// changes tells the promises that a change of membership is about to be sent.
func (c *client) changes(what string) {
	w := c.p.host.world
	w.mu.Lock()
	defer w.mu.Unlock()
	w.promises.beforeChange(c.p, what)
}

// Promote makes a learner a voter; it asks the leader.
func (c *client) Promote(ctx context.Context, id uint64, leaderURL string) error {
	w := c.p.host.world
	i := slices.IndexFunc(w.hosts, func(h *host) bool { return h.clientURL() == leaderURL })
	c.changes("promote")
	sent := w.now()
	promoteErr := c.once(ctx, w.hosts[i], call{
		name: "promote", lane: laneStep, write: true,
		check: func(*member) error { return w.etcd.promote(id) },
		apply: func(*member) error {
			w.promises.beforePromote(c.p, id, w.now()-sent)
			w.etcd.applyPromote(id)
			return nil
		},
	})
	list, err := c.membersOn(ctx, laneStep)
	if err != nil {
		return errors.Join(promoteErr, err)
	}
	m, ok := list.ByID(id)
	switch {
	case ok && !m.Learner:
		return nil
	case !ok:
		return errors.Join(cluster.ErrNotListed, promoteErr)
	case promoteErr != nil:
		return fmt.Errorf("cannot promote the learner: %w", promoteErr)
	}
	return errors.New("cannot promote the learner: the member list still says learner")
}

// MoveLeader hands leadership from the member at leaderURL to another voter.
func (c *client) MoveLeader(ctx context.Context, leaderURL string, to uint64) error {
	w := c.p.host.world
	i := slices.IndexFunc(w.hosts, func(h *host) bool { return h.clientURL() == leaderURL })
	return c.once(ctx, w.hosts[i], call{
		name: "move leader", lane: laneStep, write: true,
		check: func(asked *member) error { return w.etcd.moveLeader(asked, to) },
		apply: func(*member) error {
			if m := w.etcd.find(to); m != nil && m != w.etcd.leader {
				w.etcd.lead(m)
				w.etcd.settle()
			}
			return nil
		},
	})
}

// RemoveLearner removes a learner. One that votes by now is left alone.
func (c *client) RemoveLearner(ctx context.Context, id uint64) error {
	w := c.p.host.world
	list, err := c.membersOn(ctx, laneStep)
	if err != nil {
		return err
	}
	m, ok := list.ByID(id)
	if !ok {
		return nil
	}
	if !m.Learner {
		return fmt.Errorf("cannot remove learner %x: it is a voter by now", id)
	}
	return c.remove(ctx, "remove learner", id, w.promises.beforeRemove)
}

// RemoveMember removes a member, whatever it is.
func (c *client) RemoveMember(ctx context.Context, id uint64) error {
	list, err := c.membersOn(ctx, laneStep)
	if err != nil {
		return err
	}
	if _, ok := list.ByID(id); !ok {
		return nil
	}
	return c.remove(ctx, "remove member", id, c.p.host.world.promises.beforeRemoval)
}

func (c *client) remove(ctx context.Context, name string, id uint64,
	judge func(by *process, id uint64, after time.Duration),
) error {
	w := c.p.host.world
	c.changes("remove")
	sent := w.now()
	removeErr := c.tell(ctx, call{
		name: name, lane: laneStep, write: true,
		check: func(m *member) error { return w.etcd.remove(m, id) },
		apply: func(*member) error {
			judge(c.p, id, w.now()-sent)
			w.etcd.applyRemove(id)
			return nil
		},
	})
	list, err := c.membersOn(ctx, laneStep)
	if err != nil {
		return errors.Join(removeErr, err)
	}
	if _, still := list.ByID(id); still {
		return fmt.Errorf("cannot %s %x: it is still listed: %w", name, id, removeErr)
	}
	return nil
}
