// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package model

import "github.com/quorumd/quorumd/agent/policy"

// An ejected member's host is recorded in the phase in which etcd may be asked to remove it. The host joins again once
// its agent has seen it healthy for long enough; the agent's death restarts that time. The model leaves out how often a
// host was ejected: it only knows that rejoining takes a while. The record of a voter matters as long as its removal
// may land. A voter that comes back and is replaced later is recorded again.
const (
	soiled uint8 = 1 + iota // it was ejected, and has not been healthy for long enough
	clean                   // it has been healthy for long enough
)

// tidyOut forgets the record of a member that stays after all, or has joined again.
func (w *world) tidyOut(i int) {
	if h := &w.hosts[i]; h.list == learner || h.list == voter && h.out != 0 && !w.mayBeTakenOut(i) {
		h.out = 0
	}
}

// mayBeTakenOut reports whether the removal of a voter is recorded or in flight.
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

// putOut records the member that a replacement ejects.
func (w *world) putOut(step uint8) {
	if step == setRemoving && w.opReplace != 0 && w.rpGone == 0 && !w.replacesItself() {
		w.hosts[w.rpWho].out = soiled
	}
}

// unwritten reports whether a voter is being replaced without a record of its ejection.
func (w *world) unwritten(i int) bool {
	h := &w.hosts[i]
	return w.opReplace != 0 && w.rpGone == 0 && int(w.rpWho) == i && h.list == voter && h.out == 0 &&
		!w.replacesItself()
}

// ejected reports whether a host was ejected and has to wait.
func (w *world) ejected(i int) bool {
	return w.hosts[i].out == soiled && w.hosts[i].list == unlisted && w.spare(i)
}

// cleans lets an ejected host have been healthy for long enough.
func (w *world) cleans(i int) bool {
	h := &w.hosts[i]
	if h.list != unlisted || !w.present(i) || !w.quorum() || h.fit == slow || h.fit == unknown {
		return false
	}
	return take(&h.out, soiled, clean)
}

// soils restarts the time for which an ejected host must be healthy.
func (h *host) soils() {
	if h.out == clean {
		h.out = soiled
	}
}

// ejectedMistakes returns mistakes about ejected hosts.
func ejectedMistakes() []Mistake {
	return []Mistake{
		{
			Name: "an ejected host joins at once", breach: ejectedJoins, scope: byStandby(0, 0),
			rules: seeing(func(v *policy.View) { v.Ejections = policy.Ejections{} }),
		},
		{
			Name: "an ejected host is never readmitted", breach: targetMissed, scope: lively(byStandby(0, 0)),
			rules: seeing(func(v *policy.View) { v.Ejections.HealthyFor = 0 }),
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
			Name: "a failed join is not counted", breach: joinUncounted, scope: of(3, 2, 1, HealthChange),
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
