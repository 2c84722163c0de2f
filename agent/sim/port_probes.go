// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/quorumd/quorumd/agent/network"
	"github.com/quorumd/quorumd/agent/record"
	"github.com/quorumd/quorumd/health"
)

// portProbes are an agent's probes of the members' ports. A probe begins a few milliseconds after the call of Watch or
// ProbeNow that finds it due.
type portProbes struct {
	p       *process
	every   time.Duration
	members []*probedMember
}

// probedMember is a member with the results of its last probes. Both ports are probed at the same moment.
type probedMember struct {
	network.Member

	peer     record.PortState
	client   record.PortState
	missed   int // consecutive probes in which a port did not accept a connection
	silent   int // consecutive probes in which neither port accepted one
	missedAt time.Duration
	silentAt time.Duration
	probedAt time.Duration
	due      time.Duration
	busy     bool
}

const (
	connectTimeout  = 3 * time.Second // the timeout of a connection
	missesUntilLost = 2
)

// now returns the time since the host's boot by the agent's clock. Unlike process.now, it does not block while the
// agent is frozen.
func (s *portProbes) now() time.Duration { return s.p.host.world.now() - s.p.began }

// Watch sets which members to probe, and how often.
func (s *portProbes) Watch(members []network.Member, every time.Duration) {
	w := s.p.host.world
	w.mu.Lock()
	defer w.mu.Unlock()
	before := s.members
	s.members, s.every = nil, every
	for _, m := range members {
		i := slices.IndexFunc(before, func(old *probedMember) bool { return old.Member == m })
		if i >= 0 {
			s.members = append(s.members, before[i])
			continue
		}
		due := s.now() + between(w.draw(uint64(s.p.host.index), m.ID, 60), 0, every)
		s.members = append(s.members, &probedMember{Member: m, due: due})
	}
	s.begin()
}

// ProbeNow probes a member now, unless it was probed since the given time.
func (s *portProbes) ProbeNow(id uint64, since time.Duration) {
	w := s.p.host.world
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, m := range s.members {
		if m.ID == id && m.probedAt < since {
			m.due = min(m.due, s.now())
		}
	}
	s.begin()
}

// Readings returns the last results.
func (s *portProbes) Readings() (all []network.Reading) {
	w := s.p.host.world
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, m := range s.members {
		reading := network.Reading{
			Member: m.ID, Name: m.Name, Peer: portOf(m.peer), Client: portOf(m.client), LookedAt: m.probedAt,
			Missed: m.missed > 0,
			Lost:   m.silent >= missesUntilLost && m.probedAt >= s.now()-3*max(s.every, w.plan.timing().Interval),
		}
		if reading.Missed {
			reading.MissedAt = m.missedAt
		}
		if reading.Lost {
			reading.LostAt = m.silentAt
		}
		all = append(all, reading)
	}
	slices.SortFunc(all, func(a, b network.Reading) int { return cmp.Compare(a.Member, b.Member) })
	return all
}

// begin schedules the probes that are due.
func (s *portProbes) begin() {
	var due []*probedMember
	for _, m := range s.members {
		if !m.busy && m.due <= s.now() {
			m.busy, m.due = true, s.now()+s.every
			due = append(due, m)
		}
	}
	w := s.p.host.world
	if len(due) > 0 {
		at := between(w.draw(uint64(s.p.host.index), 61), time.Millisecond, 5*time.Millisecond)
		w.after(at, laneProbes, func() { s.probe(due) })
	}
}

func (s *portProbes) probe(due []*probedMember) {
	w, from, began := s.p.host.world, s.p.host, s.now()
	stopped := s.p.dead.Load() || w.now() < time.Duration(s.p.frozen.Load())
	for _, m := range due {
		switch to := w.hostByPeerURL(m.Peer); {
		case stopped:
			m.busy = false
		case !w.linked(from, to):
			w.after(connectTimeout, laneProbes, func() {
				m.setResult(record.PortUnreachable, record.PortUnreachable, began)
			})
		case !to.unit.running:
			m.setResult(record.PortRefused, record.PortRefused, began)
		case to.unit.frozen:
			m.setResult(record.PortSilent, record.PortSilent, began)
		case !to.accepts(m.Peer):
			m.setResult(record.PortRefused, record.PortAnswers, began)
		default:
			m.setResult(record.PortAnswers, record.PortAnswers, began)
		}
	}
}

// portOf converts the state of a port to the result of a probe.
func portOf(state record.PortState) network.Port {
	if state == record.PortAnswers {
		return network.Port{State: state, RTT: time.Millisecond}
	}
	return network.Port{State: state}
}

// setResult records the result of a probe. After a failure, it schedules the next probe within a second, until
// missesUntilLost probes in a row have failed.
func (m *probedMember) setResult(peer, client record.PortState, began time.Duration) {
	m.busy, m.peer, m.client, m.probedAt = false, peer, client, began
	if peer.Accepts() || client.Accepts() {
		m.silent = 0
	} else if m.silent++; m.silent == 1 {
		m.silentAt = began
	}
	if peer.Accepts() && client.Accepts() {
		m.missed = 0
		return
	}
	if m.missed++; m.missed == 1 {
		m.missedAt = began
	}
	if m.missed < missesUntilLost {
		m.due = min(m.due, began+time.Second)
	}
}

// memberMetrics returns the fsync metrics of the etcd at a client URL, if this host reaches it.
func (p *process) memberMetrics(_ context.Context, url string) health.EtcdReading {
	p.delay(laneVersion)
	w := p.host.world
	w.mu.Lock()
	defer w.mu.Unlock()
	i := slices.IndexFunc(w.hosts, func(h *host) bool { return h.clientURL() == url })
	if i < 0 || !w.carries(p.host, w.hosts[i]) || !w.carries(w.hosts[i], p.host) {
		return health.NotAvailable[health.EtcdReading]("it is unreachable")
	}
	if m := w.hosts[i].unit.member(); m == nil || !m.runs() {
		return health.NotAvailable[health.EtcdReading]("it does not answer")
	}
	r := health.NotAvailable[health.EtcdReading]("it is not simulated")
	r.WALFsync = w.hosts[i].disk.histogram()
	return r
}

// metrics returns the metrics of this host's etcd: its fsyncs, and what it received from every other member. A follower
// receives nothing from another follower, although they are connected.
func (p *process) metrics(context.Context) health.EtcdReading {
	p.delay(laneVersion) // a lane for reads outside the loop
	w := p.host.world
	w.mu.Lock()
	defer w.mu.Unlock()
	m := p.host.unit.member()
	if m == nil || !m.runs() {
		return health.NotAvailable[health.EtcdReading]("it does not answer")
	}
	r := health.NotAvailable[health.EtcdReading]("it is not simulated")
	r.HasLeader = health.Figure{Known: true}
	if m.follows {
		r.HasLeader.Value = 1
	}
	r.WALFsync = p.host.disk.histogram()
	r.Peers = map[uint64]health.Peer{}
	for _, o := range m.etcd.members {
		if o == m {
			continue
		}
		reached := w.dials(m, o)
		if (m == m.etcd.leader || o == m.etcd.leader) && o.runs() && w.carries(o.host, m.host) &&
			(reached || w.dials(o, m)) {
			if m.received == nil {
				m.received = map[uint64]time.Duration{}
			}
			m.received[o.id] = w.now()
		}
		r.Peers[o.id] = health.Peer{
			Received: float64(m.received[o.id]), Active: o.runs() && reached && w.carries(m.host, o.host),
		}
	}
	return r
}
