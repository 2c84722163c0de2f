// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package model

import "github.com/quorumd/quorumd/agent/policy"

// The write that allows the removal of a member also records its ejection. The host may join again after its agent has
// observed it as healthy for long enough. The agent's death restarts that time. The model leaves out how many times a
// host was ejected, and therefore how long it waits. The ejection of a voter matters as long as its removal can still
// be applied. If the voter returns and is replaced later, its ejection is recorded again.
const (
	ejectedWaiting uint8 = 1 + iota // the host was ejected, and has not been healthy for long enough
	ejectedHealthy                  // the host was ejected, and has been healthy for long enough since
)

// tidyEjection drops the ejection of a member that is not removed after all or has joined again.
func (w *world) tidyEjection(i int) {
	if h := &w.hosts[i]; h.list == learner || h.list == voter && h.ejection != 0 && !w.removalPending(i) {
		h.ejection = 0
	}
}

// removalPending reports whether the replacement of a voter is recorded or its removal is in flight.
func (w *world) removalPending(i int) bool {
	if w.op != 0 && w.opReplace != 0 && w.rpGone == 0 && int(w.rpTarget) == i || w.hosts[i].lateRemove != 0 {
		return true
	}
	for g := range w.n {
		if a := &w.hosts[g]; a.phase == sent && a.step == removeMember && int(a.target) == i {
			return true
		}
	}
	return false
}

// recordEjection records the ejection of the replaced voter, with the write that allows its removal.
func (w *world) recordEjection(step uint8) {
	if step == setRemoving && w.opReplace != 0 && w.rpGone == 0 && !w.replacesItself() {
		w.hosts[w.rpTarget].ejection = ejectedWaiting
	}
}

// ejectionUnrecorded reports whether another host replaces a voter without a record of its ejection.
func (w *world) ejectionUnrecorded(i int) bool {
	h := &w.hosts[i]
	return w.opReplace != 0 && w.rpGone == 0 && int(w.rpTarget) == i && h.list == voter && h.ejection == 0 &&
		!w.replacesItself()
}

// ejected reports whether a host was ejected and may not join yet.
func (w *world) ejected(i int) bool {
	return w.hosts[i].ejection == ejectedWaiting && w.hosts[i].list == unlisted && w.spare(i)
}

// ejectedRecovers marks an ejected host as healthy for long enough, and reports whether it did.
func (w *world) ejectedRecovers(i int) bool {
	h := &w.hosts[i]
	if h.list != unlisted || !w.present(i) || !w.quorum() || h.health == slow || h.health == unknown {
		return false
	}
	return compareAndSet(&h.ejection, ejectedWaiting, ejectedHealthy)
}

// restartEjectionWait restarts the time for which an ejected host must be healthy.
func (h *host) restartEjectionWait() {
	if h.ejection == ejectedHealthy {
		h.ejection = ejectedWaiting
	}
}

// ejectedMistakes returns the mistakes about ejected hosts.
func ejectedMistakes() []Mistake {
	return []Mistake{
		{
			Name: "an ejected host joins at once", breach: ejectedJoins, scope: byStandby(0, 0),
			rules: seeing(func(v *policy.View) { v.Ejections = policy.Ejections{} }),
		},
		{
			Name: "an ejected host is never readmitted", breach: targetMissed, scope: withLiveness(byStandby(0, 0)),
			rules: seeing(func(v *policy.View) { v.Ejections.HealthyFor = 0 }),
		},
		{
			Name: "an ejection is recorded only after the removal", breach: ejectionForgotten,
			scope: replacements(0, 0), rules: rules{ejectionAfterRemoval: true},
		},
		{
			Name: "an ejection is not recorded", breach: ejectionForgotten, scope: replacements(0, 0),
			rules: rules{decision: func(d *policy.Decision) { d.Notes.Repair = false }},
		},
		{
			Name: "a failed join is not counted", breach: joinMiscounted, scope: clusterWith(3, 2, 1, HealthChange),
			rules: rules{decision: func(d *policy.Decision) {
				if d.Notes.Join == policy.JoinFailed {
					d.Notes.Join = policy.JoinUncounted
				}
			}},
		},
		{
			Name: "an ejected host is reported as ready", breach: readyDiffers, scope: byStandby(0, 0),
			rules: rules{decision: func(d *policy.Decision) {
				if d.Waiting == policy.Ejected {
					d.Waiting = ""
				}
			}},
		},
	}
}
