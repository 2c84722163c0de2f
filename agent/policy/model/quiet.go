// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package model

import "github.com/quorumd/quorumd/agent/policy"

// What a host asks less often while all is quiet changes no state here, because no step relies on old answers. So the
// model checks when a host may report that all is quiet.

// quiet reports whether a host that has decided would ask the members only in every second round. The queue is as its
// writer has last written it; it is no part of a sight.
func (m *machine) quiet(v policy.View, d policy.Decision) bool {
	if d.Step.Kind != policy.StepNone || len(d.Reasons) == 0 || d.Reasons[0].Code != policy.Idle {
		return false
	}
	if m.quietView != nil {
		m.quietView(&v)
	}
	if note := policy.Decide(v).Notes.Queue; note.Keeps {
		v.Queue = &note.Queue
	}
	return policy.Decide(v).Quiet
}

// judgeQuiet checks that a host that reports all quiet knows of nothing in progress.
func (w *world) judgeQuiet(h int) breach {
	own := &w.hosts[h]
	asked := own.work != noWork || w.removalSeen(h).rmRequested != 0
	if asked || own.health == slow || own.health == unknown || w.op != 0 || w.lock >= 0 || w.stable == 0 {
		return quietTooEarly
	}
	for i := range w.n {
		g := &w.hosts[i]
		waits := w.present(i) && (g.inOperation() || g.work != noWork && !w.requestOver(i))
		lags := g.list == learner && g.progress != steady
		if waits || lags || g.list != unlisted && !w.answers(i) {
			return quietTooEarly
		}
	}
	return fine
}
