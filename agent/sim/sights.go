// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/quorumd/quorumd/agent/network"
	"github.com/quorumd/quorumd/health"
)

// sights are one agent process's probes of the members' ports. A probe begins with a round, or a moment later.
type sights struct {
	p       *process
	every   time.Duration
	members []*sighted
}

// sighted is a member with the result of its last probes. Both ports are always in the same state.
type sighted struct {
	network.Member

	state    network.State
	missed   int // consecutive probes without a connection
	missedAt time.Duration
	lookedAt time.Duration
	due      time.Duration
	busy     bool
}

const (
	connectBound = 3 * time.Second // within which a connection succeeds or fails
	lostAfter    = 2
)

// now is the agent's clock, without its gate.
func (s *sights) now() time.Duration { return s.p.host.world.now() - s.p.began }

// Watch sets the members to probe.
func (s *sights) Watch(members []network.Member, every time.Duration) {
	w := s.p.host.world
	w.mu.Lock()
	defer w.mu.Unlock()
	before := s.members
	s.members, s.every = nil, every
	for _, m := range members {
		i := slices.IndexFunc(before, func(old *sighted) bool { return old.Member == m })
		if i >= 0 {
			s.members = append(s.members, before[i])
			continue
		}
		due := s.now() + between(w.draw(uint64(s.p.host.index), m.ID, 60), 0, every)
		s.members = append(s.members, &sighted{Member: m, due: due})
	}
	s.begin()
}

// ProbeNow probes a member once more.
func (s *sights) ProbeNow(id uint64, since time.Duration) {
	w := s.p.host.world
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, m := range s.members {
		if m.ID == id && m.lookedAt < since {
			m.due = min(m.due, s.now())
		}
	}
	s.begin()
}

// Sights returns the last results.
func (s *sights) Sights() (all []network.Sight) {
	w := s.p.host.world
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, m := range s.members {
		way := network.Port{State: m.state}
		if m.state == network.Answers {
			way.RTT = time.Millisecond
		}
		sight := network.Sight{
			Member: m.ID, Name: m.Name, Peer: way, Client: way, LookedAt: m.lookedAt, Missed: m.missed > 0,
			Lost: m.missed >= lostAfter && m.lookedAt >= s.now()-3*max(s.every, s.p.host.world.plan.timing().Interval),
		}
		if sight.Missed {
			sight.MissedAt = m.missedAt
		}
		if sight.Lost {
			sight.LostAt = m.missedAt
		}
		all = append(all, sight)
	}
	slices.SortFunc(all, func(a, b network.Sight) int { return cmp.Compare(a.Member, b.Member) })
	return all
}

// begin begins the probes that are due.
func (s *sights) begin() {
	var due []*sighted
	for _, m := range s.members {
		if !m.busy && m.due <= s.now() {
			m.busy, m.due = true, s.now()+s.every
			due = append(due, m)
		}
	}
	w := s.p.host.world
	if len(due) > 0 {
		at := between(w.draw(uint64(s.p.host.index), 61), time.Millisecond, 5*time.Millisecond)
		w.after(at, laneSights, func() { s.look(due) })
	}
}

func (s *sights) look(due []*sighted) {
	w, from, began := s.p.host.world, s.p.host, s.now()
	stopped := s.p.dead.Load() || w.now() < time.Duration(s.p.frozen.Load())
	for _, m := range due {
		i := slices.IndexFunc(w.hosts, func(h *host) bool { return h.peerURL() == m.Peer })
		switch to := w.hosts[i]; {
		case stopped:
			m.busy = false
		case !w.linked(from, to):
			w.after(connectBound, laneSights, func() { m.found(network.Unreachable, began) })
		case !to.unit.process:
			m.found(network.Refused, began)
		case to.unit.frozen:
			m.found(network.Silent, began)
		default:
			m.found(network.Answers, began)
		}
	}
}

func (m *sighted) found(state network.State, began time.Duration) {
	m.busy, m.state, m.lookedAt = false, state, began
	if state.Accepts() {
		m.missed = 0
		return
	}
	if m.missed++; m.missed == 1 {
		m.missedAt = began
	}
	if m.missed < lostAfter {
		m.due = min(m.due, began+time.Second)
	}
}

// memberMetrics returns the fsync counts of the etcd at a client URL, if this host reaches it.
func (p *process) memberMetrics(_ context.Context, url string) health.EtcdReading {
	p.passBy(laneVersion)
	w := p.host.world
	w.mu.Lock()
	defer w.mu.Unlock()
	i := slices.IndexFunc(w.hosts, func(h *host) bool { return h.clientURL() == url })
	if i < 0 || !w.carries(p.host, w.hosts[i]) || !w.carries(w.hosts[i], p.host) {
		return health.NotAvailable[health.EtcdReading]("it is not reached")
	}
	if m := w.hosts[i].unit.member(); m == nil || !m.runs() {
		return health.NotAvailable[health.EtcdReading]("it does not answer")
	}
	seen := health.NotAvailable[health.EtcdReading]("it is not simulated")
	seen.WALFsync = w.hosts[i].disk.histogram()
	return seen
}

// metrics returns this host's etcd metrics: its fsyncs, and what it received from others. A follower receives nothing
// from another follower, although they are connected.
func (p *process) metrics(context.Context) health.EtcdReading {
	p.passBy(laneVersion) // which only reads, too
	w := p.host.world
	w.mu.Lock()
	defer w.mu.Unlock()
	m := p.host.unit.member()
	if m == nil || !m.runs() {
		return health.NotAvailable[health.EtcdReading]("it does not answer")
	}
	seen := health.NotAvailable[health.EtcdReading]("it is not simulated")
	seen.HasLeader = health.Figure{Known: true}
	if m.follows {
		seen.HasLeader.Value = 1
	}
	seen.WALFsync = p.host.disk.histogram()
	seen.Peers = map[uint64]health.Peer{}
	for _, o := range m.etcd.members {
		if o == m {
			continue
		}
		if (m == m.etcd.leader || o == m.etcd.leader) && o.runs() && w.carries(o.host, m.host) {
			if m.received == nil {
				m.received = map[uint64]time.Duration{}
			}
			m.received[o.id] = w.now()
		}
		seen.Peers[o.id] = health.Peer{Received: float64(m.received[o.id])}
	}
	return seen
}
