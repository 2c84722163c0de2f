// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package model

import "github.com/quorumd/quorumd/agent/policy"

// Whose member was taken out by a replacement stands in a record that is written with the phase in which etcd may be
// told. Its host joins again when its agent has seen it well for long enough, and forgets that when it dies: how often
// it was taken out is no part of the model, only that it takes a while. Of a voter the record matters as long as its
// removal may land; one that comes back and is replaced later is written down anew.
const (
	soiled uint8 = 1 + iota // it was taken out, and has not been well for long enough
	clean                   // it has
)

// tidyOut forgets what is written of a member that is not taken out after all, and of one that has joined again.
func (w *world) tidyOut(i int) {
	if h := &w.hosts[i]; h.list == learner || h.list == voter && h.out != 0 && !w.mayBeTakenOut(i) {
		h.out = 0
	}
}

// mayBeTakenOut reports whether a removal of a voter is recorded, or on its way.
func (w *world) mayBeTakenOut(i int) bool {
	if w.op != 0 && w.opReplace != 0 && w.rpGone == 0 && int(w.rpWho) == i || w.hosts[i].lateRemove != 0 {
		return true
	}
	for g := range w.n {
		if a := &w.hosts[g]; a.phase == sent && a.step == removeMember && int(a.target) == i {
			return true
		}
	}
	return false
}

// putOut is what is written beside the record of a replacement: whose member goes.
func (w *world) putOut(step uint8) {
	if step == setRemoving && w.opReplace != 0 && w.rpGone == 0 && !w.replacesItself() {
		w.hosts[w.rpWho].out = soiled
	}
}

// unwritten reports whether a voter is replaced of which nothing is written.
func (w *world) unwritten(i int) bool {
	h := &w.hosts[i]
	return w.opReplace != 0 && w.rpGone == 0 && int(w.rpWho) == i && h.list == voter && h.out == 0 &&
		!w.replacesItself()
}

// ejected reports whether a host has been taken out, and must wait.
func (w *world) ejected(i int) bool {
	return w.hosts[i].out == soiled && w.hosts[i].list == unlisted && w.spare(i)
}

// cleans lets a host have been well for long enough.
func (w *world) cleans(i int) bool {
	h := &w.hosts[i]
	if h.list != unlisted || !w.present(i) || !w.quorum() || h.fit == slow || h.fit == unknown {
		return false
	}
	return take(&h.out, soiled, clean)
}

// soils has a host's time begin anew.
func (h *host) soils() {
	if h.out == clean {
		h.out = soiled
	}
}

// ejectedMistakes are mistakes about hosts that were taken out.
func ejectedMistakes() []Mistake {
	return []Mistake{
		{
			Name: "an ejected host joins at once", breach: ejectedJoins, scope: byStandby(0, 0),
			rules: seeing(func(v *policy.View) { v.Ejections = policy.Ejections{} }),
		},
		{
			Name: "an ejected host is never readmitted", breach: targetMissed, scope: lively(byStandby(0, 0)),
			rules: seeing(func(v *policy.View) { v.Ejections.WellFor = 0 }),
		},
		{
			Name: "an ejection is recorded only after the removal", breach: ejectionForgotten,
			scope: replacements(0, 0), rules: rules{outAfterwards: true},
		},
		{
			Name: "an ejection is not recorded", breach: ejectionForgotten, scope: replacements(0, 0),
			rules: rules{say: func(d *policy.Decision) { d.Notes.Repair = false }},
		},
		{
			Name: "a failed join is not counted", breach: joinUncounted, scope: of(3, 2, 1, VerdictChange),
			rules: rules{say: func(d *policy.Decision) {
				if d.Notes.Join == policy.JoinFailed {
					d.Notes.Join = policy.JoinUncounted
				}
			}},
		},
		{
			Name: "an ejected host is reported as ready", breach: readyDiffers, scope: byStandby(0, 0),
			rules: rules{say: func(d *policy.Decision) {
				if d.Waiting == policy.Ejected {
					d.Waiting = ""
				}
			}},
		},
	}
}
