// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package proxy

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"time"
)

// table holds the voters, and the connections to them.
type table struct {
	listen  string
	spread  time.Duration
	elapsed func() time.Duration

	mu        sync.Mutex
	upstreams []*upstream // voters of the list in force, and others that still have connections
	stale     bool        // the list is old
	links     int         // connections of clients, including those without a voter yet
	refused   uint64      // number of client connections refused because the limit was reached
	reset     uint64      // number of client connections reset because no voter accepted them
}

// upstream is the address of a voter, with the connections to it.
type upstream struct {
	address, name string
	use           bool
	why           string
	excludedAt    time.Duration       // when the voter was last excluded
	avoidUntil    time.Duration       // until then, the voter is tried last
	links         map[*link]time.Time // connections, and when to close each; zero: not scheduled
	moving        bool                // the connections are scheduled to close
	accepted      uint64              // connections accepted
	failures      uint64              // connections not accepted
	moved         uint64              // connections closed because the voter is excluded
}

func newTable(listen string, spread time.Duration, elapsed func() time.Duration) *table {
	return &table{listen: listen, spread: spread, elapsed: elapsed}
}

// static makes these addresses the voters, all of them selected.
func (t *table) static(addresses []string) {
	var l List
	for _, a := range addresses {
		l.Voters = append(l.Voters, Voter{Name: a, Address: a, Use: true})
	}
	t.update(l)
}

// update applies a list and reports whether it changed anything. It skips the proxy's own address.
func (t *table) update(l List) (different bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	before := map[string]*upstream{}
	for _, p := range t.upstreams {
		before[p.address] = p
	}
	var now []*upstream
	for _, v := range l.Voters {
		if isSelf(v.Address, t.listen) {
			continue
		}
		p := before[v.Address]
		if p == nil {
			p = &upstream{address: v.Address, use: v.Use, excludedAt: t.elapsed(), links: map[*link]time.Time{}}
			different = true
		}
		delete(before, v.Address)
		different = different || p.use != v.Use || p.why != v.Why
		p.setUse(v.Use, t.elapsed())
		p.name, p.why = v.label(), v.Why
		now = append(now, p)
	}
	// an address that the list does not name is not a voter's
	for _, address := range slices.Sorted(maps.Keys(before)) {
		p := before[address]
		different = different || p.use
		p.setUse(false, t.elapsed())
		p.why = "is not a voter"
		if len(p.links) > 0 {
			now = append(now, p)
		}
	}
	t.upstreams = now
	return different
}

// setUse sets whether a voter is selected, and records when it was excluded.
func (p *upstream) setUse(use bool, now time.Duration) {
	if p.use && !use {
		p.excludedAt = now
	}
	p.use = use
}

func (t *table) setStale(stale bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.stale = stale
}

// order returns the voters to try for a new connection, the best first.
func (t *table) order() []*upstream {
	t.mu.Lock()
	defer t.mu.Unlock()
	now := t.elapsed()
	candidates := make([]candidate, len(t.upstreams))
	for i, p := range t.upstreams {
		candidates[i] = candidate{use: p.use, failed: now < p.avoidUntil, open: len(p.links)}
	}
	var tried []*upstream
	for _, i := range order(candidates, rand.Perm(len(candidates)), t.stale) {
		tried = append(tried, t.upstreams[i])
	}
	return tried
}

// move schedules the closing of connections to excluded voters, and closes those that are due. With an old list, it
// closes none, because the list may be wrong.
func (t *table) move() {
	var due []*link
	t.mu.Lock()
	now := time.Now()
	for _, p := range t.upstreams {
		stay := p.use || t.stale
		if stay && !p.moving || !stay && t.elapsed()-p.excludedAt < moveAfter {
			continue
		}
		p.moving = !stay
		for l, at := range p.links {
			switch {
			case stay:
				p.links[l] = time.Time{}
			case at.IsZero():
				p.links[l] = now.Add(rand.N(t.spread + 1))
			case !now.Before(at):
				p.moved++
				due = append(due, l)
			}
		}
	}
	t.mu.Unlock()
	for _, l := range due {
		l.close()
	}
}

// admit counts a client's connection, unless the limit is reached.
func (t *table) admit(most int) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.links >= most {
		t.refused++
		return false
	}
	t.links++
	return true
}

// unserved counts a connection that no voter accepted.
func (t *table) unserved() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.reset++
}

// leave counts the end of a client's connection.
func (t *table) leave() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.links--
}

func (t *table) add(p *upstream, l *link) {
	t.mu.Lock()
	defer t.mu.Unlock()
	p.links[l] = time.Time{}
	if !slices.Contains(t.upstreams, p) { // the upstream was removed while the connection was being made
		t.upstreams = append(t.upstreams, p)
	}
}

func (t *table) remove(p *upstream, l *link) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(p.links, l)
}

func (t *table) answered(p *upstream) {
	t.mu.Lock()
	defer t.mu.Unlock()
	p.avoidUntil, p.accepted = 0, p.accepted+1
}

func (t *table) failed(p *upstream) {
	t.mu.Lock()
	defer t.mu.Unlock()
	p.avoidUntil, p.failures = t.elapsed()+avoidFor, p.failures+1
}

// status returns the number of connections to each voter, in one line.
func (t *table) status() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	var all []string
	for _, p := range t.upstreams {
		text := fmt.Sprintf("%s %d", p.name, len(p.links))
		if !p.use {
			text += " (" + p.why + ")"
		}
		all = append(all, text)
	}
	text := fmt.Sprintf("%d connections: %s", t.links, strings.Join(all, ", "))
	if t.stale {
		text += "; the list is old"
	}
	return text
}
