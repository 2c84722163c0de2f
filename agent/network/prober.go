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
)

const (
	// Every is how often a host probes a member.
	Every = 10 * time.Second
	// largeEvery is how often a request is larger than a packet.
	largeEvery = time.Minute
	// barredEvery is how often to probe a port that refuses this host's certificate, as a peer port with a CA of its
	// own does: etcd logs each attempt.
	barredEvery = time.Minute
	// perHost is added to a spare's interval for every host of the fleet: all spares together probe a member ten times
	// a second, regardless of their number.
	perHost = 100 * time.Millisecond
)

// Pace returns how often a host should probe. A host that may have to act always probes at [Every].
func Pace(rests bool, hosts int) time.Duration {
	if !rests {
		return Every
	}
	return max(Every, time.Duration(hosts)*perHost)
}

// Options configure a Prober.
type Options struct {
	// TLS returns the configuration with this host's certificate. It may be nil, or return nil, for no certificate.
	TLS func() *tls.Config
	Now func() time.Duration
}

// Prober probes the members. Make it with [New] and run it once; the other methods never block.
type Prober struct {
	opt    Options
	looks  looker
	change chan struct{}

	mu      sync.Mutex
	every   time.Duration
	members []*member
}

type member struct {
	Member

	ways [2]way // peer and client
}

// New returns a Prober without members.
func New(opt Options) *Prober {
	return &Prober{
		opt: opt, looks: looker{tls: opt.TLS, answer: answerBound}, change: make(chan struct{}, 1), every: Every,
	}
}

// Watch sets the members to probe, and how often. It keeps the results of members that stay the same.
func (p *Prober) Watch(members []Member, every time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	members = members[:min(len(members), MostMembers)]
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
			for i := range added.ways { // hosts that learn of a member at the same time must not probe at the same time
				added.ways[i].due = p.opt.Now() + rand.N(every)
			}
			next = append(next, added)
			continue
		}
		next = append(next, p.members[i])
	}
	p.members = next
	p.wake()
}

// Sights returns the last results, in the order of the members' IDs.
func (p *Prober) Sights() []Sight {
	p.mu.Lock()
	defer p.mu.Unlock()
	var all []Sight
	for _, m := range p.members {
		all = append(all, m.sight(p.opt.Now()-staleAfter*p.every))
	}
	slices.SortFunc(all, func(a, b Sight) int { return cmp.Compare(a.Member, b.Member) })
	return all
}

// staleAfter is after how many intervals a probe is too old to make a member lost.
const staleAfter = 3

// sight returns the result for a member. Probes from before oldest do not make it lost.
func (m *member) sight(oldest time.Duration) Sight {
	peer, client := &m.ways[0], &m.ways[1]
	s := Sight{
		Member: m.ID, Name: m.Name, Peer: peer.shown, Client: client.shown,
		LookedAt: min(peer.lookedAt, client.lookedAt), Missed: peer.missed+client.missed > 0,
	}
	for _, w := range m.ways {
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

// ProbeNow probes a member at once, unless the last probes of both ports are younger than that.
func (p *Prober) ProbeNow(id uint64, since time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	i := slices.IndexFunc(p.members, func(m *member) bool { return m.ID == id })
	if i < 0 {
		return
	}
	for w := range p.members[i].ways {
		if way := &p.members[i].ways[w]; way.lookedAt < since {
			way.due = min(way.due, p.opt.Now())
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

// Run probes until the context ends, and then waits for the running probes.
func (p *Prober) Run(ctx context.Context) {
	var under sync.WaitGroup
	defer under.Wait()
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
		case <-p.change:
		}
		timer.Reset(p.begin(ctx, &under))
	}
}

// begin starts the due probes, and returns the time until the next one.
func (p *Prober) begin(ctx context.Context, under *sync.WaitGroup) time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := p.opt.Now()
	next := p.every
	for _, m := range p.members {
		for i, address := range []string{m.Peer, m.Client} {
			w := &m.ways[i]
			at, known := portOf(address)
			if !known {
				continue
			}
			if !w.busy && w.due <= now {
				large := w.large(now)
				if w.busy = true; large {
					w.asked, w.largeAt = true, now
				}
				w.due = now + p.wait(w)
				other := &m.ways[1-i]
				under.Go(func() { p.look(ctx, w, other, at, large, now) })
			}
			next = min(next, max(w.due-now, min(p.every, time.Second)))
		}
	}
	return next
}

// wait returns how long to wait for the next probe. It is random, so that hosts started together drift apart.
func (p *Prober) wait(w *way) time.Duration {
	every := p.every
	switch {
	case w.barred && w.shown.State == Answers && w.bad == 0: // the published state does not depend on the next probe
		every = max(every, barredEvery)
	case w.missed > 0 && w.missed < lostAfter:
		every = min(every, missedEvery)
	}
	return every*3/4 + rand.N(every/2)
}

// look probes one port of a member. If the port accepts no connection, the other port, which may be probed less often,
// is probed as soon: a member is lost if neither accepts one.
func (p *Prober) look(ctx context.Context, w, other *way, at port, large bool, began time.Duration) {
	found := p.looks.look(ctx, at, large)
	p.mu.Lock()
	defer p.mu.Unlock()
	w.busy = false
	if ctx.Err() == nil { // otherwise it was cancelled
		w.found(found)
		w.took(began, found)
		if w.missed > 0 && w.missed < lostAfter {
			w.due = min(w.due, p.opt.Now()+p.wait(w))
			if other.barred {
				other.due = min(other.due, p.opt.Now())
			}
			p.wake()
		}
	}
}
