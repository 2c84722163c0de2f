// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package sim

import "time"

// link is one direction of the network between two hosts.
type link struct {
	cuts  int           // how many faults cut it; 0 if it works
	since time.Duration // when it was last restored
}

// cut adds by to the number of faults that cut the link from one host to another. A negative by removes faults; the
// link works again when none is left.
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

// linkedFor returns for how long two members have reached each other.
func (w *world) linkedFor(a, b *member) time.Duration {
	if !a.runs() || !b.runs() || !w.linked(a.host, b.host) {
		return 0
	}
	since := max(a.upSince, b.upSince, w.links[a.host.index][b.host.index].since,
		w.links[b.host.index][a.host.index].since)
	return w.now() - since
}
