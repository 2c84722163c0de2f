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

// table is who may be connected to, and who is.
type table struct {
	listen  string
	spread  time.Duration
	elapsed func() time.Duration

	mu      sync.Mutex
	places  []*place // of the list in force, and those that still have connections
	aged    bool     // the list is old
	links   int      // connections of clients, also those that no voter has taken yet
	refused uint64   // because of their number
	reset   uint64   // because no voter took them
}

// place is where connections go: a voter's address.
type place struct {
	address, name string
	use           bool
	why           string
	unwanted      time.Duration       // since when it is not to be used
	avoid         time.Duration       // until then it is tried last
	links         map[*link]time.Time // connections, and when they are moved; zero while they are not
	moving        bool                // some are
	taken         uint64              // connections that it has taken
	failures      uint64              // that it has not
	moved         uint64              // that were closed because it is not wanted
}

func newTable(listen string, spread time.Duration, elapsed func() time.Duration) *table {
	return &table{listen: listen, spread: spread, elapsed: elapsed}
}

// static has all addresses used: nothing is known of them.
func (t *table) static(addresses []string) {
	var l List
	for _, a := range addresses {
		l.Voters = append(l.Voters, Voter{Name: a, Address: a, Use: true})
	}
	t.update(l)
}

// update takes a list. It tells whether anything is different now. A voter whose address leads back here is left out.
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
	for _, address := range slices.Sorted(maps.Keys(before)) { // no voters any more
		p := before[address]
		different = different || p.use
		p.want(false, t.elapsed())
		p.why = "is no voter"
		if len(p.links) > 0 {
			now = append(now, p)
		}
	}
	t.places = now
	return different
}

// want notes since when a place is not wanted.
func (p *place) want(use bool, now time.Duration) {
	if p.use && !use {
		p.unwanted = now
	}
	p.use = use
}

// age says whether the list is old.
func (t *table) age(aged bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.aged = aged
}

// order gives whom to try for a new connection, the best first.
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

// move closes what is due of the connections to places that are not wanted. An old list moves nobody: it may be wrong
// by now.
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

// admit counts a client's connection in, unless there are as many as there may be.
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

// unserved counts one that no voter has taken.
func (t *table) unserved() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.reset++
}

// leave counts it out.
func (t *table) leave() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.links--
}

func (t *table) add(p *place, l *link) {
	t.mu.Lock()
	defer t.mu.Unlock()
	p.links[l] = time.Time{}
	if !slices.Contains(t.places, p) { // it went while it was being connected to
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

// status says in a line where the connections are.
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
