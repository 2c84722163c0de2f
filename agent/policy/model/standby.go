// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package model

// strayed reports whether a standby is lost: nobody is to be found on its host, it does not get on, or it is sick.
func (w *world) strayed(i int) bool {
	if w.present(i) && w.hosts[i].fit == slow {
		return true
	}
	return int(w.dead) == i+1 && w.seemsDead(i) || w.answers(i) && w.hosts[i].prog == behind && w.stall != 0
}

// judgeLetGo holds a step that lets a learner go for which nobody joins against the world at the moment of the view:
// one that has started is a standby.
func (w *world) judgeLetGo(h int, c choice) breach {
	who := int(c.target)
	t := &w.hosts[who]
	if t.list != learner || t.named == 0 || c.step == removeLearner && w.opLeft == 0 {
		return fine
	}
	if !w.strayed(who) {
		return standbyLetGo
	}
	if c.step == removeLearner {
		return fine
	}
	for i := range w.n {
		if i != h && i != who && w.hosts[i].list == unlisted && w.present(i) && w.ready(i) {
			return fine
		}
	}
	return standbyForNothing
}
