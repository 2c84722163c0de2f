// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package model

// answer is etcd's answer to a membership change.
type answer uint8

const (
	accepted         answer = iota
	unhealthyCluster        // "unhealthy cluster"
	urlExists               // "Peer URLs already exists"
	tooManyLearners         // "too many learner members in cluster"
	notInSync               // "can only promote a learner member which is in sync with leader"
	notLearner              // "can only promote a learner member"
	notFound                // "member not found"
	notEnough               // "re-configuration failed due to not enough started members"
	answers
)

// refusesAdd returns etcd's answer to a MemberAddAsLearner. The member that receives the call checks whether the
// running voters would still be a majority if there were one voter more. Every member checks the rest again when it
// applies the entry.
func (w *world) refusesAdd(i int, late bool) answer {
	voters, running := w.votes()
	switch {
	case !late && voters > 1 && running < majority(voters+1):
		return unhealthyCluster
	case w.hosts[i].list != unlisted:
		return urlExists
	case w.learners(i) >= int(max(w.limit, 1)):
		return tooManyLearners
	}
	return accepted
}

// refusesPromote returns etcd's answer to a MemberPromote. Etcd does not check whether the learner runs. It checks only
// roughly whether the learner has caught up: 90% of the log is enough. It always refuses a learner that has never
// started.
func (w *world) refusesPromote(i int) answer {
	h := &w.hosts[i]
	switch {
	case h.list == unlisted:
		return notFound
	case h.list == voter:
		return notLearner
	case h.named == 0 && h.data != current:
		return notInSync
	}
	return accepted
}

// refusesRemove returns etcd's answer to a MemberRemove. Etcd always removes a learner. It also removes a voter that
// the serving member does not reach, if enough of the remaining voters have ever started.
func (w *world) refusesRemove(i int, late bool) answer {
	h := &w.hosts[i]
	voters, running := w.votes()
	switch {
	case h.list == unlisted:
		return notFound
	case h.list == voter && !late && !w.enoughWithout(i):
		return notEnough
	case h.list == voter && !late && w.runs(i) && running-1 < 1+(voters-1)/2:
		return unhealthyCluster
	}
	return accepted
}

// enoughWithout reports whether a majority of the other voters has ever started. Without other voters there is no
// majority.
func (w *world) enoughWithout(i int) bool {
	others, started := 0, 0
	for g := range w.n {
		if g != i && w.hosts[g].list == voter {
			others++
			started += int(w.hosts[g].named)
		}
	}
	return started >= majority(others)
}

// answerSet is a set of answers.
type answerSet uint16

func setOf(list ...answer) (s answerSet) {
	for _, a := range list {
		s |= 1 << a
	}
	return s
}

// mayRefuse returns the errors that etcd may return instead of accepting a call, for reasons that no world contains.
// Etcd reports the cluster as unhealthy until the serving member has had its connections for 5 s. A member that is
// added again within a second gets the removed ID. And a leader that has had no contact with a member since its
// election, or is far ahead of it, treats that member as not in sync.
func (w *world) mayRefuse(step uint8, i int) answerSet {
	h := &w.hosts[i]
	voters, _ := w.votes()
	switch {
	case step == addLearner && voters > 1:
		return setOf(unhealthyCluster, notFound)
	case step == addLearner:
		return setOf(notFound)
	case (step == removeLearner || step == removeMember) && h.list == voter:
		return setOf(unhealthyCluster)
	case step == promote && h.list != unlisted && (!w.serves(i) || h.progress == behind):
		return setOf(notInSync)
	}
	return 0
}
