// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package sim

import "time"

// link is one direction of the way between two hosts.
type link struct {
	cuts  int           // how many faults cut it; 0 when it is whole
	since time.Duration // when it was last mended
}

// cut breaks the way from one host to another, or mends it again.
func (w *world) cut(from, to *host, by int) {
	if from == to {
		return // nothing comes between an agent and its own etcd
	}
	l := &w.links[from.index][to.index]
	l.cuts += by
	if l.cuts == 0 {
		l.since = w.now()
	}
}

// carries reports whether what one host sends reaches the other.
func (w *world) carries(from, to *host) bool {
	return from.powered && to.powered && w.links[from.index][to.index].cuts == 0
}

// linked reports whether two hosts hear each other.
func (w *world) linked(a, b *host) bool { return w.carries(a, b) && w.carries(b, a) }

// linkedFor gives for how long two members have heard each other.
func (w *world) linkedFor(a, b *member) time.Duration {
	if !a.runs() || !b.runs() || !w.linked(a.host, b.host) {
		return 0
	}
	since := max(a.upSince, b.upSince, w.links[a.host.index][b.host.index].since,
		w.links[b.host.index][a.host.index].since)
	return w.now() - since
}
