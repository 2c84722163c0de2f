// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package model

// comeUp is what becomes of a unit that is starting, and of one whose member was removed. how
// chooses where etcd's own end is open: a removed member exits with 0 or 1.
func (w *world) comeUp(i int, how uint8) (ok bool, found breach) {
	h := &w.hosts[i]
	if h.unit == inactive || h.unit == failed || (how != 0 && h.data != old) {
		return false, fine
	}
	switch {
	case h.data == old && !w.hears(i):
		return false, fine // nobody tells it that it was removed
	case h.data == old:
		h.unit = failed
		if how != 0 {
			h.unit = inactive
		}
		return true, fine
	case h.unit == active:
		return false, fine
	case h.data == current:
		if !w.quorum() || !w.runs(i) || (h.list == learner && !w.hears(i)) {
			return false, fine
		}
		h.unit, h.named = active, 1
		return true, fine
	}
	return w.firstStart(i)
}

// firstStart is the start of etcd on an empty directory. One that joins asks any member for the
// list, makes its data, and is ready only when a quorum has heard of it.
func (w *world) firstStart(i int) (ok bool, found breach) {
	h := &w.hosts[i]
	voters, _ := w.votes()
	switch {
	case h.env == newEnv && voters > 0:
		w.second = 1
		h.unit = failed
		return true, secondCluster
	case h.env == newEnv:
		h.list, h.named, h.data, h.unit = voter, 1, current, active
		w.stable = 0
	case h.env == joinEnv && h.list == learner && w.hears(i):
		h.data = current
	default: // "member count is unequal", nobody to ask for the list, or a voter without its data
		h.unit, h.data = failed, remains
	}
	return true, fine
}

// mayHang tells whether an etcd that starts may wait for ever: one that was removed is told so by
// the members that it knows of, and one that was killed at its first start knows of none.
func (w *world) mayHang(i int) bool {
	h := &w.hosts[i]
	return h.data == old && h.unit == starting
}
