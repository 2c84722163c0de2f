// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

//go:build realetcd

package model

import (
	"cmp"
	"container/heap"
	"fmt"
	"hash/fnv"
	"maps"
	"slices"
	"sync"
	"testing"
	"time"
)

// plan tracks the pairs that are still to be compared. Several benches work on it at once.
type plan struct {
	mu     sync.Mutex
	next   map[cluster][]edge
	left   map[pair]bool   // not yet compared, in this round
	mine   map[pair]bool   // a bench is on its way there
	done   map[pair]bool   // compared
	paths  map[uint64]bool // from the start of a trace to a compared pair
	firsts map[cluster]int
	traces int
	steps  int
	least  int // steps, before the last round ends
	calls  int
	open   map[string]int
	differ []string
	at     map[pair]bool // where they were found
	enough int           // differences, after which the tour ends

	patience time.Duration
}

// edge is an operation with precomputed properties, because ways are searched thousands of times.
type edge struct {
	operation
	essence pair
	to      cluster
	cost    int
}

func (q pair) edge() edge {
	w := q.at.world(maxHosts)
	return edge{q.operation, q.essence(), q.after(), q.cost(&w)}
}

// free reports whether the operation only prepares others.
func (o operation) free() bool { return o.kind == opEnv || o.kind == opAside }

// logs separates a difference from the ends of the members' logs.
const logs = "\nthe members:\n"

func newPlan(met map[pair]int, firsts map[cluster]int) *plan {
	p := &plan{
		next: map[cluster][]edge{}, left: map[pair]bool{}, mine: map[pair]bool{}, done: map[pair]bool{},
		paths:  map[uint64]bool{},
		firsts: firsts, open: map[string]int{}, enough: 5, at: map[pair]bool{}, patience: longPatience,
	}
	for q := range met {
		if !q.chance() {
			p.next[q.at] = append(p.next[q.at], q.edge())
		}
	}
	for _, list := range p.next {
		slices.SortFunc(list, func(a, b edge) int {
			return cmp.Or(cmp.Compare(a.kind, b.kind), cmp.Compare(a.host, b.host), cmp.Compare(a.arg, b.arg))
		})
	}
	p.fill()
	return p
}

// fill marks everything that can be reached as not yet compared.
func (p *plan) fill() {
	list := slices.Collect(maps.Keys(p.firsts))
	seen := map[cluster]bool{}
	for len(list) > 0 {
		at := list[0]
		if list = list[1:]; seen[at] {
			continue
		}
		seen[at] = true
		for _, e := range p.next[at] {
			if list = append(list, e.to); !e.free() {
				p.left[e.essence] = true
			}
		}
	}
}

// chance reports whether an outcome cannot be forced. Such outcomes are compared when they happen.
func (q pair) chance() bool {
	w := q.at.world(maxHosts)
	return q.kind == opUp && q.arg != 0 && w.hosts[q.host].data != old
}

// essence leaves out hosts that take no part: those without a member and without a running etcd.
func (q pair) essence() pair {
	w := q.at.world(maxHosts)
	for i := range w.n {
		if h := &w.hosts[i]; i != int(q.host) && h.list == unlisted && h.unit == inactive {
			*h = host{}
		}
	}
	at, order := clusterOf(&w)
	return pair{at, q.placed(order, w.n, at)}
}

// cost returns about how many milliseconds an operation takes.
func (o operation) cost(w *world) int {
	voters, _ := w.votes()
	switch o.kind {
	case opAdd, opLateAdd:
		if voters > 1 && w.refusesAdd(int(o.host), false) == accepted {
			return 3000
		}
		return 20
	case opKill, opCrash, opStop, opCut:
		return 600
	case opUp:
		return 300
	}
	return 50
}

// after returns the state that an operation leads to.
func (q pair) after() cluster {
	w := q.at.world(maxHosts)
	q.do(&w)
	next, _ := clusterOf(&w)
	return next
}

// way returns the cheapest way from a state to a pair that is left. It ends with that pair.
func (p *plan) way(from cluster) []pair {
	p.mu.Lock()
	defer p.mu.Unlock()
	reached := map[cluster]*spot{from: {at: from}}
	for open := (spots{reached[from]}); len(open) > 0; {
		here := heap.Pop(&open).(*spot)
		for _, e := range p.next[here.at] {
			if p.left[e.essence] && !p.mine[e.essence] {
				p.mine[e.essence] = true
				return append(here.way(reached), pair{here.at, e.operation})
			}
		}
		for _, e := range p.next[here.at] {
			cost, by := here.cost+e.cost, pair{here.at, e.operation}
			switch there := reached[e.to]; {
			case there == nil:
				reached[e.to] = &spot{at: e.to, cost: cost, by: by}
				heap.Push(&open, reached[e.to])
			case cost < there.cost: // no cost is negative: it is still open
				there.cost, there.by = cost, by
				heap.Fix(&open, there.place)
			}
		}
	}
	return nil
}

// spot is a state on the way, and how it is reached.
type spot struct {
	at    cluster
	cost  int
	by    pair // the last operation before it
	place int  // among the open ones
}

// way returns the way to this spot.
func (s *spot) way(reached map[cluster]*spot) (list []pair) {
	for ; s.by != (pair{}); s = reached[s.by.at] {
		list = append(list, s.by)
	}
	slices.Reverse(list)
	return list
}

// spots are the open ones of a search, the cheapest first.
type spots []*spot

func (l spots) Len() int { return len(l) }
func (l spots) Less(i, j int) bool {
	return cmp.Or(cmp.Compare(l[i].cost, l[j].cost), slices.Compare(l[i].at.key[:], l[j].at.key[:])) < 0
}
func (l spots) Swap(i, j int) { l[i], l[j] = l[j], l[i]; l[i].place, l[j].place = i, j }
func (l *spots) Push(s any)   { s.(*spot).place = len(*l); *l = append(*l, s.(*spot)) }
func (l *spots) Pop() any {
	s := (*l)[len(*l)-1]
	*l = (*l)[:len(*l)-1]
	return s
}

// giveBack lets other benches go to the pair at the end of a way.
func (p *plan) giveBack(way []pair) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(way) > 0 {
		delete(p.mine, way[len(way)-1].essence())
	}
}

// compared notes that a pair has been compared at the end of a path.
func (p *plan) compared(q pair, path uint64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if q.free() {
		return
	}
	e := q.essence()
	p.steps++
	p.paths[path] = true
	p.done[e] = true
	if delete(p.left, e); e.kind == opUp { // etcd chooses the outcome
		e.arg = 1 - e.arg
		delete(p.left, e)
		p.done[e] = true
	}
	if len(p.left) == 0 && p.steps < p.least {
		p.fill()
	}
}

func (p *plan) differsAt(q pair) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.at[q.essence()] = true
}

// begin chooses the states to begin in.
func (p *plan) begin() []cluster {
	return slices.SortedFunc(maps.Keys(p.firsts), func(a, b cluster) int {
		return cmp.Compare(p.firsts[a], p.firsts[b])
	})
}

// work drives benches through what is left, one after the other.
func (p *plan) work(t testing.TB, version string, c claims, until time.Time) {
	for _, first := range p.begin() {
		for {
			way := p.way(first)
			if way == nil || time.Now().After(until) {
				break
			}
			if !p.walk(t, version, c, first, way, until) {
				return
			}
		}
	}
}

// walk drives one bench as long as it leads somewhere. It returns false when enough differences are found.
func (p *plan) walk(t testing.TB, version string, c claims, first cluster, way []pair, until time.Time) bool {
	b := newBench(t, version, c, p.firsts[first], p.patience)
	defer b.close()
	err, path, refused := b.compare(), fnv.New64a(), map[pair]int{}
	for err == nil && len(way) > 0 && time.Now().Before(until) && t.Context().Err() == nil {
		q := way[0]
		at, order := clusterOf(&b.w)
		if at != q.at { // an open answer has led elsewhere
			p.giveBack(way)
			way = p.way(at)
			continue
		}
		o := q.operation
		o.host = order[o.host]
		if err = b.try(o); err != nil {
			p.differsAt(q)
			break
		}
		fmt.Fprintln(path, q)
		p.compared(q, path.Sum64())
		if after, _ := clusterOf(&b.w); after == at && q.after() != at {
			if refused[q]++; refused[q] == 4 { // no voter has ever been in contact with a learner that does not run
				break
			}
		}
		if way = way[1:]; len(way) == 0 {
			at, _ := clusterOf(&b.w)
			way = p.way(at)
		}
	}
	p.giveBack(way)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.traces++
	p.calls += b.calls
	for text, n := range b.open {
		p.open[text] += n
	}
	if err != nil && t.Context().Err() == nil {
		story := fmt.Sprintf("etcd %s and the model differ:\n", version)
		for _, line := range b.story {
			story += line + "\n"
		}
		p.differ = append(p.differ, story+err.Error()+logs+b.processes())
	}
	return len(p.differ) < p.enough
}
