// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package model

import (
	"strings"
	"testing"
)

func (s defragScope) explore() (string, int) {
	return worlds[defragWorld]{
		first: s.initial(), successors: s.successors, liveness: "every worthwhile defragmentation is done",
		breach: func(w defragWorld) string { return w.breach },
		faults: func(w defragWorld) int { return w.faults },
		ends:   func(w defragWorld) bool { return w.done() },
	}.explore()
}

func TestAgentsRequestDefragmentationsOnlyWhenATriggerAppliesInAnyOrderOfEvents(t *testing.T) {
	t.Parallel()
	for _, s := range []defragScope{
		{files: [defragHosts]fileState{fragmented, nearlyFull, compact}, faults: 2},
		{files: [defragHosts]fileState{fragmented, fragmented, filled}, faults: 1},
		{files: [defragHosts]fileState{nearlyFull, nearlyFull, nearlyFull}, faults: 1},
	} {
		broken, states := s.explore()
		t.Logf("files %v, %d faults: %d states", s.files, s.faults, states)
		if broken != "" {
			t.Fatalf("%+v: %s", s, broken)
		}
	}
}

func TestEveryMistakeInRequestingDefragmentationsBreaksItsPromise(t *testing.T) {
	t.Parallel()
	for mistake, promise := range map[string]string{
		"the window is ignored":                                    defragOnlyIfDue,
		"the time of the last defragmentation is ignored":          defragNotTooSoon,
		"a restarted agent has forgotten the last defragmentation": defragNotTooSoon,
		"the data in use is ignored":                               defragOnlyIfUseful,
		"a request outlasts its window":                            defragStillDue,
		"another host's lock and operation are ignored":            "one member at a time is down",
		"hosts in the queue are ignored":                           defragOnlyOneRequest,
		"the lock is never free":                                   "every worthwhile defragmentation is done",
		"a defragmentation is never due for long enough":           "every worthwhile defragmentation is done",
	} {
		t.Run(mistake, func(t *testing.T) {
			t.Parallel()
			s := defragScope{files: [defragHosts]fileState{fragmented, fragmented, filled}, mistake: mistake}
			if strings.Contains(mistake, "last defragmentation") {
				s.faults = 2 // for example, clients fill the file again
			}
			broken, states := s.explore()
			if got, _, _ := strings.Cut(broken, "\n"); got == "" || !strings.HasPrefix(got, promise) {
				t.Errorf("%d states: broke %q, want %q", states, broken, promise)
			}
		})
	}
}
