// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package model

// unitChanges completes a stop or a start, or ends the etcd of a removed member. how selects one of etcd's possible
// outcomes: a removed member exits with 0 or 1, and a joining one may ask a member with an outdated list.
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
		return false, fine // this etcd reaches no member that could report its removal
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

// firstStart starts etcd on an empty directory. A joining etcd asks any member for the list, creates its data, and
// becomes ready only with a quorum.
func (w *world) firstStart(i int, how uint8) (ok bool, found breach) {
	h := &w.hosts[i]
	voters, _ := w.votes()
	switch {
	case h.env == newEnv && voters > 0:
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

// mayJoin reports whether an etcd can start on an empty directory as the learner that etcd lists for its host.
func (w *world) mayJoin(i int) bool {
	h := &w.hosts[i]
	return h.data != current && h.env == joinEnv && h.list == learner && w.reachesMember(i)
}

// asksOldList reports whether a joining etcd may still receive a list without itself, and exit with "error validating
// peerURLs". Etcd uses the first answer, which may come from a follower that has not applied the change yet, or from a
// member that has just started and has not reached the end of its log.
func (w *world) asksOldList(i int) bool {
	voters, _ := w.votes()
	for g := range w.n {
		if w.hosts[g].list == voter && w.runs(g) && (voters > 1 || w.hosts[g].unit == starting) {
			return w.mayJoin(i)
		}
	}
	return false
}

// mayHang reports whether a starting etcd may wait forever. A removed member detects its removal only through members
// in its own list, and a member that was killed at its first start has no list.
func (w *world) mayHang(i int) bool {
	h := &w.hosts[i]
	return h.data == old && h.unit == starting
}
