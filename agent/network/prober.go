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
	// Every is how often a host looks at a member.
	Every = 10 * time.Second
	// largeEvery is how often a question is larger than a packet.
	largeEvery = time.Minute
	// barredEvery is how often a port is asked that refuses this host's certificate, as a peer port with a CA of its
	// own does: etcd logs each time.
	barredEvery = time.Minute
	// perHost is by how much longer each spare waits from one look to the next for every host of the fleet: all spares
	// together look at a member ten times a second, however many they are.
	perHost = 100 * time.Millisecond
)

// Pace gives how often a host should look. One that may have to act looks always at [Every].
func Pace(rests bool, hosts int) time.Duration {
	if !rests {
		return Every
	}
	return max(Every, time.Duration(hosts)*perHost)
}

// Options are what a prober is made of.
type Options struct {
	// TLS gives the configuration with this host's certificate; nil, or one that gives nil, for none.
	TLS func() *tls.Config
	Now func() time.Duration
}

// Prober looks at the members. Make it with [New] and run it once; the other methods never wait.
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

// New makes one that knows no member.
func New(opt Options) *Prober {
	return &Prober{
		opt: opt, looks: looker{tls: opt.TLS, answer: answerBound}, change: make(chan struct{}, 1), every: Every,
	}
}

// Watch says whom to look at from now on, and how often. What was seen of a member that stays the same is kept.
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
			for i := range added.ways { // those who learn of a member at the same time do not come at the same time
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

// Sights gives what was seen last, in the order of the members' IDs.
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

// staleAfter is after how many times the usual wait a look is too old to call anybody lost.
const staleAfter = 3

// sight gives what was seen of a member. Looks from before oldest call nobody lost.
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

// ProbeNow has a member looked at at once, if the last look at one of its ports is not younger than that.
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

// Run looks until the context ends, and then waits for the looks that are under way.
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

// begin starts the looks that are due, and gives when the next one is.
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

// wait is how long to wait for the next look. Hosts that were started together drift apart.
func (p *Prober) wait(w *way) time.Duration {
	every := p.every
	switch {
	case w.barred && w.shown.State == Answers && w.bad == 0: // what it was found to be does not hang on this look
		every = max(every, barredEvery)
	case w.missed > 0 && w.missed < lostAfter:
		every = min(every, missedEvery)
	}
	return every*3/4 + rand.N(every/2)
}

// look looks at one port of a member. If it takes no connection, the other port, which may be looked at less often, is
// looked at as soon: a member is lost when both take none.
func (p *Prober) look(ctx context.Context, w, other *way, at port, large bool, began time.Duration) {
	found := p.looks.look(ctx, at, large)
	p.mu.Lock()
	defer p.mu.Unlock()
	w.busy = false
	if ctx.Err() == nil { // else it was called off
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
