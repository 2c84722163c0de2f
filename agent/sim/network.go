// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package sim

import "time"

// link is one direction of the network between two hosts.
type link struct {
	cuts  int           // how many faults cut it; 0 if it works
	since time.Duration // when the link was last restored
}

// cut changes the number of faults that cut the link from one host to another. by is negative when a fault ends. The
// link works again when that number is 0.
func (w *world) cut(from, to *host, by int) {
	if from == to {
		return // an agent always reaches its own etcd
	}
	l := &w.links[from.index][to.index]
	l.cuts += by
	if l.cuts == 0 {
		l.since = w.now()
	}
}

// carries reports whether messages from one host reach the other.
func (w *world) carries(from, to *host) bool {
	return from.powered && to.powered && w.links[from.index][to.index].cuts == 0
}

// linked reports whether two hosts reach each other.
func (w *world) linked(a, b *host) bool { return w.carries(a, b) && w.carries(b, a) }

// linkedFor returns how long two members have been able to reach each other; 0 if they cannot.
func (w *world) linkedFor(a, b *member) time.Duration {
	if !a.runs() || !b.runs() || !w.connected(a, b) {
		return 0
	}
	since := max(a.upSince, b.upSince, w.links[a.host.index][b.host.index].since,
		w.links[b.host.index][a.host.index].since)
	return w.now() - since
}

func networkFaults() []fault {
	isolate := func(in, out bool) func(w *world, h *host, _ time.Duration) func() {
		return func(w *world, h *host, _ time.Duration) func() {
			cut := func(by int) {
				for _, o := range w.hosts {
					if in {
						w.cut(o, h, by)
					}
					if out {
						w.cut(h, o, by)
					}
				}
				w.networkChanged()
			}
			cut(1)
			return func() { cut(-1) }
		}
	}
	return []fault{
		{name: "the host is isolated", weight: 5, low: time.Second, high: 20 * time.Minute, begin: isolate(true, true)},
		{
			name: "the host receives nothing", weight: 3, low: time.Second, high: 10 * time.Minute,
			begin: isolate(true, false),
		},
		{
			name: "the host sends nothing", weight: 3, low: time.Second, high: 10 * time.Minute,
			begin: isolate(false, true),
		},
		{name: "the network is split", weight: 3, low: time.Second, high: 15 * time.Minute, begin: split},
		{
			name: "one direction between two hosts is cut", weight: 4, low: time.Second, high: 20 * time.Minute,
			begin: func(w *world, h *host, _ time.Duration) func() {
				o := w.hosts[w.faults.IntN(len(w.hosts))]
				w.cut(h, o, 1)
				w.networkChanged()
				return func() { w.cut(h, o, -1); w.networkChanged() }
			},
		},
		{
			name: "answers are lost", weight: 4, low: 10 * time.Second, high: 10 * time.Minute,
			begin: func(w *world, h *host, _ time.Duration) func() {
				h.lossPercent = uint64(10 + w.faults.IntN(80))
				return func() { h.lossPercent = 0 }
			},
		},
		{
			name: "writes are delayed", weight: 6, low: 10 * time.Second, high: 15 * time.Minute,
			begin: func(w *world, h *host, _ time.Duration) func() {
				h.latePercent = uint64(10 + w.faults.IntN(80))
				return func() { h.latePercent = 0 }
			},
		},
		{
			name: "the network is slow", weight: 3, low: 10 * time.Second, high: 10 * time.Minute,
			begin: func(w *world, h *host, _ time.Duration) func() {
				h.maxDelay.Store(int64(time.Duration(100+w.faults.IntN(2500)) * time.Millisecond))
				return func() { h.maxDelay.Store(0) }
			},
		},
	}
}

// split divides the network into two partitions.
func split(w *world, h *host, _ time.Duration) func() {
	side := make([]bool, len(w.hosts))
	for i := range side {
		side[i] = w.faults.IntN(2) == 0
	}
	side[h.index] = true
	cut := func(by int) {
		for _, a := range w.hosts {
			for _, b := range w.hosts {
				if side[a.index] != side[b.index] {
					w.cut(a, b, by)
				}
			}
		}
		w.networkChanged()
	}
	cut(1)
	return func() { cut(-1) }
}

// networkChanged applies the effects of a network change to all members, including removed ones.
func (w *world) networkChanged() {
	w.updateEtcds()
	for _, h := range w.hosts {
		h.unit.exitIfRemoved()
	}
}
