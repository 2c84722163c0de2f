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

// plan tracks which pairs remain to be compared. Several benches share it.
type plan struct {
	mu             sync.Mutex
	edges          map[cluster][]edge
	left           map[pair]bool   // not yet compared since the last resetLeft
	taken          map[pair]bool   // a bench is about to compare it
	done           map[pair]bool   // compared
	paths          map[uint64]bool // hashes of the paths from the start of a trace to a compared pair
	starts         map[cluster]int
	traces         int
	steps          int
	minSteps       int // before this many steps, all pairs are compared again when no pair is left
	calls          int
	openAnswers    map[string]int
	differences    []string
	differsIn      map[pair]bool // the pairs with differences
	maxDifferences int           // the number of differences after which the comparison ends

	patience time.Duration
}

// edge is an operation with precomputed properties, because paths are searched thousands of times.
type edge struct {
	operation
	reduced pair
	to      cluster
	cost    int
}

func (q pair) edge() edge {
	w := q.at.world(maxHosts)
	return edge{q.operation, q.reduced(), q.after(), q.cost(&w)}
}

// isPreparation reports whether the operation only prepares others.
func (o operation) isPreparation() bool { return o.kind == opEnv || o.kind == opAside }

// logs separates a difference from the ends of the members' logs.
const logs = "\nthe members:\n"

func newPlan(all map[pair]int, firsts map[cluster]int) *plan {
	p := &plan{
		edges: map[cluster][]edge{}, left: map[pair]bool{}, taken: map[pair]bool{}, done: map[pair]bool{},
		paths:  map[uint64]bool{},
		starts: firsts, openAnswers: map[string]int{}, maxDifferences: 5, differsIn: map[pair]bool{},
		patience: longPatience,
	}
	for q := range all {
		if !q.isRandom() {
			p.edges[q.at] = append(p.edges[q.at], q.edge())
		}
	}
	for _, list := range p.edges {
		slices.SortFunc(list, func(a, b edge) int {
			return cmp.Or(cmp.Compare(a.kind, b.kind), cmp.Compare(a.host, b.host), cmp.Compare(a.arg, b.arg))
		})
	}
	p.resetLeft()
	return p
}

// resetLeft marks every reachable pair as not yet compared.
func (p *plan) resetLeft() {
	list := slices.Collect(maps.Keys(p.starts))
	seen := map[cluster]bool{}
	for len(list) > 0 {
		at := list[0]
		if list = list[1:]; seen[at] {
			continue
		}
		seen[at] = true
		for _, e := range p.edges[at] {
			if list = append(list, e.to); !e.isPreparation() {
				p.left[e.reduced] = true
			}
		}
	}
}

// isRandom reports whether the test cannot force the outcome. Such a pair is compared when it occurs.
func (q pair) isRandom() bool {
	w := q.at.world(maxHosts)
	return q.kind == opUp && q.arg != 0 && w.hosts[q.host].data != old
}

// reduced returns the pair without the hosts that have neither a member nor a running etcd.
func (q pair) reduced() pair {
	w := q.at.world(maxHosts)
	for i := range w.n {
		if h := &w.hosts[i]; i != int(q.host) && h.list == unlisted && h.unit == inactive {
			*h = host{}
		}
	}
	at, order := clusterOf(&w)
	return pair{at, q.atPlace(order, w.n, at)}
}

// cost returns roughly how long an operation takes, in milliseconds.
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

// after returns the state to which the operation leads.
func (q pair) after() cluster {
	w := q.at.world(maxHosts)
	q.do(&w)
	next, _ := clusterOf(&w)
	return next
}

// nextPath returns the cheapest path from a state to a pair that is left, with that pair at its end, and marks the pair
// as taken.
func (p *plan) nextPath(from cluster) []pair {
	p.mu.Lock()
	defer p.mu.Unlock()
	reached := map[cluster]*searchNode{from: {at: from}}
	for open := (searchQueue{reached[from]}); len(open) > 0; {
		here := heap.Pop(&open).(*searchNode)
		for _, e := range p.edges[here.at] {
			if p.left[e.reduced] && !p.taken[e.reduced] {
				p.taken[e.reduced] = true
				return append(here.path(reached), pair{here.at, e.operation})
			}
		}
		for _, e := range p.edges[here.at] {
			cost, by := here.cost+e.cost, pair{here.at, e.operation}
			switch there := reached[e.to]; {
			case there == nil:
				reached[e.to] = &searchNode{at: e.to, cost: cost, via: by}
				heap.Push(&open, reached[e.to])
			case cost < there.cost: // costs are positive, so it is still in the queue
				there.cost, there.via = cost, by
				heap.Fix(&open, there.index)
			}
		}
	}
	return nil
}

// searchNode is a reached state of a search.
type searchNode struct {
	at    cluster
	cost  int
	via   pair // the operation that led to this state, and the state before it
	index int  // the index of this node in the queue
}

// path returns the path to this state.
func (s *searchNode) path(reached map[cluster]*searchNode) (list []pair) {
	for ; s.via != (pair{}); s = reached[s.via.at] {
		list = append(list, s.via)
	}
	slices.Reverse(list)
	return list
}

// searchQueue is a heap of the states from which to continue a search, the cheapest first.
type searchQueue []*searchNode

func (l searchQueue) Len() int { return len(l) }
func (l searchQueue) Less(i, j int) bool {
	return cmp.Or(cmp.Compare(l[i].cost, l[j].cost), slices.Compare(l[i].at.key[:], l[j].at.key[:])) < 0
}
func (l searchQueue) Swap(i, j int) { l[i], l[j] = l[j], l[i]; l[i].index, l[j].index = i, j }
func (l *searchQueue) Push(s any)   { s.(*searchNode).index = len(*l); *l = append(*l, s.(*searchNode)) }

func (l *searchQueue) Pop() any {
	s := (*l)[len(*l)-1]
	*l = (*l)[:len(*l)-1]
	return s
}

// release lets other benches take the pair at the end of a path.
func (p *plan) release(path []pair) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(path) > 0 {
		delete(p.taken, path[len(path)-1].reduced())
	}
}

// compared records that a pair was compared at the end of a path.
func (p *plan) compared(q pair, path uint64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if q.isPreparation() {
		return
	}
	e := q.reduced()
	p.steps++
	p.paths[path] = true
	p.done[e] = true
	if delete(p.left, e); e.kind == opUp { // etcd chooses the outcome
		e.arg = 1 - e.arg
		delete(p.left, e)
		p.done[e] = true
	}
	if len(p.left) == 0 && p.steps < p.minSteps {
		p.resetLeft()
	}
}

func (p *plan) addDifference(q pair) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.differsIn[q.reduced()] = true
}

// startStates returns the initial states, those with fewer voters first.
func (p *plan) startStates() []cluster {
	return slices.SortedFunc(maps.Keys(p.starts), func(a, b cluster) int {
		return cmp.Compare(p.starts[a], p.starts[b])
	})
}

// work compares the remaining pairs, on one bench after another.
func (p *plan) work(t testing.TB, version string, c claims, until time.Time) {
	for _, first := range p.startStates() {
		for {
			path := p.nextPath(first)
			if path == nil || time.Now().After(until) {
				break
			}
			if !p.walk(t, version, c, first, path, until) {
				return
			}
		}
	}
}

// walk compares remaining pairs on one bench as long as it can reach one. It returns false if enough differences are
// found.
func (p *plan) walk(t testing.TB, version string, c claims, first cluster, path []pair, until time.Time) bool {
	b := newBench(t, version, c, p.starts[first], p.patience)
	defer b.close()
	err, trace, refused := b.compare(), fnv.New64a(), map[pair]int{}
	for err == nil && len(path) > 0 && time.Now().Before(until) && t.Context().Err() == nil {
		q := path[0]
		at, order := clusterOf(&b.w)
		if at != q.at { // an answer that the model leaves open led to a different state
			p.release(path)
			path = p.nextPath(at)
			continue
		}
		o := q.operation
		o.host = order[o.host]
		if err = b.apply(o); err != nil {
			p.addDifference(q)
			break
		}
		fmt.Fprintln(trace, q)
		p.compared(q, trace.Sum64())
		if after, _ := clusterOf(&b.w); after == at && q.after() != at {
			if refused[q]++; refused[q] == 4 { // the learner does not run, and no voter has ever contacted it
				break
			}
		}
		if path = path[1:]; len(path) == 0 {
			at, _ := clusterOf(&b.w)
			path = p.nextPath(at)
		}
	}
	p.release(path)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.traces++
	p.calls += b.calls
	for text, n := range b.openAnswers {
		p.openAnswers[text] += n
	}
	if err != nil && t.Context().Err() == nil {
		story := fmt.Sprintf("etcd %s and the model differ:\n", version)
		for _, line := range b.story {
			story += line + "\n"
		}
		p.differences = append(p.differences, story+err.Error()+logs+b.processes())
	}
	return len(p.differences) < p.maxDifferences
}
