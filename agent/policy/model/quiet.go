// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package model

import "github.com/quorumd/quorumd/agent/policy"

// In a quiet cluster, hosts poll less often. This changes no state of the model, because no step relies on old answers,
// so the model checks only when a host may decide that the cluster is quiet.

// quiet reports whether a host with this decision would poll the members only in every second round. An observation
// does not contain the queue, so the view gets the queue that this host would write.
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

// judgeQuiet checks that nothing is in progress when a host decides that the cluster is quiet.
func (w *world) judgeQuiet(h int) breach {
	own := &w.hosts[h]
	requested := own.work != noWork || w.removalSeen(h).rmRequested|w.transferSeen(h).trRequested != 0
	if requested || own.health == slow || own.health == unknown || w.op != 0 || w.lock >= 0 || w.stable == 0 {
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
