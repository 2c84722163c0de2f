// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package model

// standbyLost reports whether a standby is lost: its agent and its etcd are both unreachable, it makes no progress, or
// it is unhealthy.
func (w *world) standbyLost(i int) bool {
	if w.present(i) && w.hosts[i].health == slow {
		return true
	}
	return int(w.dead) == i+1 && w.seemsDead(i) ||
		w.answers(i) && w.hosts[i].progress == behind && w.learnerStalled != 0
}

// judgeStandbyRemoval checks a step that removes a learner without a join against the world at the time of the view. A
// learner that has started is a standby: it must be lost, and when its removal begins, another host must be ready.
func (w *world) judgeStandbyRemoval(h int, c choice) breach {
	who := int(c.target)
	t := &w.hosts[who]
	if t.list != learner || t.named == 0 || c.step == removeLearner && w.opLeft == 0 {
		return fine
	}
	if w.isPermanent(who) {
		return permanentRemoved
	}
	if !w.standbyLost(who) {
		return usefulStandbyRemoved
	}
	if c.step == removeLearner {
		return fine
	}
	for i := range w.n {
		if i != h && i != who && w.hosts[i].list == unlisted && w.present(i) && w.ready(i) && !w.isPermanent(i) {
			return fine
		}
	}
	return standbyWithoutReplacement
}
