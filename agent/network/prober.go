// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package network

import (
	"cmp"
	"context"
	"crypto/tls"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/quorumd/quorumd/agent/record"
)

const (
	// Every is the interval at which a host probes a member.
	Every = 10 * time.Second
	// largeEvery is the interval between two requests that are larger than a packet.
	largeEvery = time.Minute
	// certRefusedEvery is the minimum interval for a port that refuses this host's certificate, for example a peer port
	// with a separate CA, because etcd logs every attempt.
	certRefusedEvery = time.Minute
	// perHost, multiplied by the number of hosts in the fleet, is the minimum interval between probes by a resting
	// host: a spare far back in the join queue. All resting hosts together probe a member at most ten times per second.
	perHost = 100 * time.Millisecond
)

// Pace returns the interval at which a host should probe. rests means that the host is a spare far back in the join
// queue. Every other host may have to act, and probes at [Every].
func Pace(rests bool, hosts int) time.Duration {
	if !rests {
		return Every
	}
	return max(Every, time.Duration(hosts)*perHost)
}

// Options configure a Prober.
type Options struct {
	// TLS returns the configuration with this host's certificate. Without a certificate it is nil or returns nil.
	TLS func() *tls.Config
	Now func() time.Duration
}

// Prober probes the members. Create it with [New] and call [Prober.Run] once. The other methods never block.
type Prober struct {
	opt      Options
	requests requester
	change   chan struct{}

	mu      sync.Mutex
	every   time.Duration
	members []*member
}

type member struct {
	Member

	ports [2]portProbe // the peer port and the client port
}

// New returns a Prober without members.
func New(opt Options) *Prober {
	return &Prober{
		opt: opt, requests: requester{tls: opt.TLS, answer: answerBound}, change: make(chan struct{}, 1), every: Every,
	}
}

// Watch sets the members to probe, and the interval. It keeps the results of members that do not change.
func (p *Prober) Watch(members []Member, every time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	members = members[:min(len(members), MaxMembers)]
	same := slices.EqualFunc(p.members, members, func(old *member, now Member) bool { return old.Member == now })
	if same && p.every == every {
		return
	}
	p.every = every
	var next []*member
	for _, m := range members {
		i := slices.IndexFunc(p.members, func(old *member) bool { return old.Member == m })
		if i < 0 {
			added := &member{Member: m}
			for i := range added.ports { // spread the probes, because all hosts observe a new member at the same time
				added.ports[i].due = p.opt.Now() + rand.N(every)
			}
			next = append(next, added)
			continue
		}
		next = append(next, p.members[i])
	}
	p.members = next
	p.wake()
}

// Readings returns the last results, sorted by member ID.
func (p *Prober) Readings() []Reading {
	p.mu.Lock()
	defer p.mu.Unlock()
	var all []Reading
	for _, m := range p.members {
		all = append(all, m.reading(p.opt.Now()-staleAfter*p.every))
	}
	slices.SortFunc(all, func(a, b Reading) int { return cmp.Compare(a.Member, b.Member) })
	return all
}

// staleAfter is the age, in intervals, at which a probe no longer counts as evidence that a member is lost.
const staleAfter = 3

// reading returns the result for a member. A probe from before oldest does not count as evidence that a member is lost.
func (m *member) reading(oldest time.Duration) Reading {
	peer, client := &m.ports[0], &m.ports[1]
	s := Reading{
		Member: m.ID, Name: m.Name, Peer: peer.published, Client: client.published,
		LookedAt: min(peer.lookedAt, client.lookedAt), Missed: peer.missed+client.missed > 0,
	}
	for _, w := range m.ports {
		if w.missed > 0 {
			s.MissedAt = max(s.MissedAt, w.missedAt)
		}
	}
	s.Lost = min(peer.missed, client.missed) >= lostAfter && s.LookedAt >= oldest
	if s.Lost {
		s.LostAt = max(peer.missedAt, client.missedAt)
	}
	return s
}

// ProbeNow makes a port of the member due for a probe at once if the port's last conclusive probe began before the time
// since.
func (p *Prober) ProbeNow(id uint64, since time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	i := slices.IndexFunc(p.members, func(m *member) bool { return m.ID == id })
	if i < 0 {
		return
	}
	for w := range p.members[i].ports {
		if probe := &p.members[i].ports[w]; probe.lookedAt < since {
			probe.due = min(probe.due, p.opt.Now())
		}
	}
	p.wake()
}

func (p *Prober) wake() {
	select {
	case p.change <- struct{}{}:
	default:
	}
}

// Run probes the members until the context ends, and then waits for the probes in progress.
func (p *Prober) Run(ctx context.Context) {
	var running sync.WaitGroup
	defer running.Wait()
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
		case <-p.change:
		}
		timer.Reset(p.begin(ctx, &running))
	}
}

// begin starts the due probes, and returns the time until the next one.
func (p *Prober) begin(ctx context.Context, running *sync.WaitGroup) time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := p.opt.Now()
	next := p.every
	for _, m := range p.members {
		for i, address := range []string{m.Peer, m.Client} {
			w := &m.ports[i]
			at, known := parseTarget(address)
			if !known {
				continue
			}
			if !w.probing && w.due <= now {
				large := w.large(now)
				if w.probing = true; large {
					w.largeSent, w.largeAt = true, now
				}
				w.due = now + p.wait(w)
				other := &m.ports[1-i]
				running.Go(func() { p.probe(ctx, w, other, at, large, now) })
			}
			next = min(next, max(w.due-now, min(p.every, time.Second)))
		}
	}
	return next
}

// wait returns a random time until the next probe, so that the probes of hosts started at the same time spread out.
func (p *Prober) wait(w *portProbe) time.Duration {
	every := p.every
	switch {
	// Probe rarely only while the state is steady, because a change of the published state must not be delayed.
	case w.certRefused && w.published.State == record.PortAnswers && w.failures == 0:
		every = max(every, certRefusedEvery)
	case w.missed > 0 && w.missed < lostAfter:
		every = min(every, missedEvery)
	}
	return every*3/4 + rand.N(every/2)
}

// probe probes one port of a member and records the result. After a first failure to connect, it schedules the port's
// next probe earlier. It then also probes the other port now if that port refuses the certificate and so is probed
// rarely, because a member is lost only if both ports fail.
func (p *Prober) probe(ctx context.Context, w, other *portProbe, at target, large bool, began time.Duration) {
	found := p.requests.probe(ctx, at, large)
	p.mu.Lock()
	defer p.mu.Unlock()
	w.probing = false
	if ctx.Err() == nil { // a cancelled probe has no result
		w.record(found)
		w.recordConnection(began, found)
		if w.missed > 0 && w.missed < lostAfter {
			w.due = min(w.due, p.opt.Now()+p.wait(w))
			if other.certRefused {
				other.due = min(other.due, p.opt.Now())
			}
			p.wake()
		}
	}
}
