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

// table holds the voters that may be used, and the connections to them.
type table struct {
	listen  string
	spread  time.Duration
	elapsed func() time.Duration

	mu      sync.Mutex
	places  []*place // of the list in force, and those that still have connections
	aged    bool     // the list is old
	links   int      // connections of clients, including those without a voter yet
	refused uint64   // over the limit
	reset   uint64   // because no voter accepted them
}

// place is a voter's address, and its connections.
type place struct {
	address, name string
	use           bool
	why           string
	unwanted      time.Duration       // since when it is unwanted
	avoid         time.Duration       // until then it is tried last
	links         map[*link]time.Time // connections, and when each is closed; zero if it stays
	moving        bool                // some of its connections are to be closed
	taken         uint64              // connections accepted
	failures      uint64              // connections refused
	moved         uint64              // connections closed because it is unwanted
}

func newTable(listen string, spread time.Duration, elapsed func() time.Duration) *table {
	return &table{listen: listen, spread: spread, elapsed: elapsed}
}

// static makes all addresses usable, as nothing is known about them.
func (t *table) static(addresses []string) {
	var l List
	for _, a := range addresses {
		l.Voters = append(l.Voters, Voter{Name: a, Address: a, Use: true})
	}
	t.update(l)
}

// update applies a list and reports whether it changed anything. It leaves out a voter whose address is the proxy's
// own.
func (t *table) update(l List) (different bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	before := map[string]*place{}
	for _, p := range t.places {
		before[p.address] = p
	}
	var now []*place
	for _, v := range l.Voters {
		if isSelf(v.Address, t.listen) {
			continue
		}
		p := before[v.Address]
		if p == nil {
			p = &place{address: v.Address, use: v.Use, unwanted: t.elapsed(), links: map[*link]time.Time{}}
			different = true
		}
		delete(before, v.Address)
		different = different || p.use != v.Use || p.why != v.Why
		p.want(v.Use, t.elapsed())
		p.name, p.why = v.label(), v.Why
		now = append(now, p)
	}
	for _, address := range slices.Sorted(maps.Keys(before)) { // no longer voters
		p := before[address]
		different = different || p.use
		p.want(false, t.elapsed())
		p.why = "is not a voter"
		if len(p.links) > 0 {
			now = append(now, p)
		}
	}
	t.places = now
	return different
}

// want records since when a place is unwanted.
func (p *place) want(use bool, now time.Duration) {
	if p.use && !use {
		p.unwanted = now
	}
	p.use = use
}

// age records whether the list is old.
func (t *table) age(aged bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.aged = aged
}

// order returns the voters to try for a new connection, the best first.
func (t *table) order() []*place {
	t.mu.Lock()
	defer t.mu.Unlock()
	now := t.elapsed()
	candidates := make([]candidate, len(t.places))
	for i, p := range t.places {
		candidates[i] = candidate{use: p.use, failed: now < p.avoid, open: len(p.links)}
	}
	var tried []*place
	for _, i := range order(candidates, rand.Perm(len(candidates)), t.aged) {
		tried = append(tried, t.places[i])
	}
	return tried
}

// move closes the connections to unwanted places that are due. With an old list it closes none, as the list may be
// wrong.
func (t *table) move() {
	var due []*link
	t.mu.Lock()
	now := time.Now()
	for _, p := range t.places {
		stay := p.use || t.aged
		if stay && !p.moving || !stay && t.elapsed()-p.unwanted < moveAfter {
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

// leave counts a connection's end.
func (t *table) leave() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.links--
}

func (t *table) add(p *place, l *link) {
	t.mu.Lock()
	defer t.mu.Unlock()
	p.links[l] = time.Time{}
	if !slices.Contains(t.places, p) { // removed while the connection was being made
		t.places = append(t.places, p)
	}
}

func (t *table) remove(p *place, l *link) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(p.links, l)
}

func (t *table) answered(p *place) {
	t.mu.Lock()
	defer t.mu.Unlock()
	p.avoid, p.taken = 0, p.taken+1
}

func (t *table) failed(p *place) {
	t.mu.Lock()
	defer t.mu.Unlock()
	p.avoid, p.failures = t.elapsed()+avoidFor, p.failures+1
}

// status returns where the connections are, in one line.
func (t *table) status() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	var all []string
	for _, p := range t.places {
		text := fmt.Sprintf("%s %d", p.name, len(p.links))
		if !p.use {
			text += " (" + p.why + ")"
		}
		all = append(all, text)
	}
	text := fmt.Sprintf("%d connections: %s", t.links, strings.Join(all, ", "))
	if t.aged {
		text += "; the list is old"
	}
	return text
}
