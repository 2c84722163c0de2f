// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package model

// unitChanges returns the outcome for a unit that is starting, and for one whose member was removed. how chooses among
// etcd's own open outcomes: a removed member exits with 0 or 1, and a joining one may ask a member with an outdated
// list.
func (w *world) unitChanges(i int, how uint8) (ok bool, found breach) {
	h := &w.hosts[i]
	if h.unit == stopping || h.unit == restarting {
		return how == 0 && w.jobDone(i), fine
	}
	if h.unit == inactive || h.unit == failed || h.unit == stoppedForRequest ||
		(how != 0 && h.data != old && !w.asksOldList(i)) {
		return false, fine
	}
	switch {
	case h.data == old && !w.reachesMember(i):
		return false, fine // no member can report to it that it was removed
	case h.data == old:
		h.unit = failed
		if how != 0 {
			h.unit = inactive
		}
		return true, fine
	case h.unit == active:
		return false, fine
	case h.data == current:
		if !w.quorum() || !w.runs(i) || (h.list == learner && !w.reachesMember(i)) {
			return false, fine
		}
		h.unit, h.named = active, 1
		return true, fine
	}
	return w.firstStart(i, how)
}

// firstStart starts etcd on an empty directory. A joining etcd asks any member for the list, creates its data, and is
// ready only when a quorum knows it.
func (w *world) firstStart(i int, how uint8) (ok bool, found breach) {
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
	case how == 0 && w.mayJoin(i):
		h.data = current
	default: // "error validating peerURLs", no member to ask for the list, or a voter without its data
		h.unit, h.data = failed, remains
	}
	return true, fine
}

// mayJoin reports whether an etcd starts on an empty directory as the member it is listed as.
func (w *world) mayJoin(i int) bool {
	h := &w.hosts[i]
	return h.data != current && h.env == joinEnv && h.list == learner && w.reachesMember(i)
}

// asksOldList reports whether a joining etcd may still receive a list without itself, and exit with "error validating
// peerURLs": it takes the first answer, be it from a follower that does not know it yet, or from a member that has just
// started and has not reached the end of its log.
func (w *world) asksOldList(i int) bool {
	voters, _ := w.votes()
	for g := range w.n {
		if w.hosts[g].list == voter && w.runs(g) && (voters > 1 || w.hosts[g].unit == starting) {
			return w.mayJoin(i)
		}
	}
	return false
}

// mayHang reports whether an etcd that starts may wait forever: a removed member learns that from the members it knows,
// and one that was killed at its first start knows none.
func (w *world) mayHang(i int) bool {
	h := &w.hosts[i]
	return h.data == old && h.unit == starting
}
