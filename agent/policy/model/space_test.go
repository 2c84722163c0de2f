// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package model

import (
	"slices"
	"strings"
	"testing"
)

// explore explores the worlds. Without a permit, an operator has to end the alarm.
func (s spaceScope) explore() (string, int) {
	return worlds[spaceWorld]{
		first: s.initial(), successors: s.successors, liveness: "every alarm ends",
		breach: func(w spaceWorld) string { return w.breach },
		faults: func(w spaceWorld) int { return w.faults },
		ends:   func(w spaceWorld) bool { return w.done() || w.alarm && w.permits == 0 },
	}.explore()
}

func TestOneAgentAtATimeFreesSpaceInAnyOrderOfEvents(t *testing.T) {
	t.Parallel()
	for _, s := range []spaceScope{
		{faults: 2},
		{live: true, faults: 1},
		{holder: true, faults: 2},
		{holder: true, live: true, faults: 1},
	} {
		broken, states := s.explore()
		t.Logf("lock held %t, compaction needed %t, %d faults: %d states", s.holder, s.live, s.faults, states)
		if broken != "" {
			t.Fatalf("%+v: %s", s, broken)
		}
	}
}

func TestEveryMistakeInFreeingSpaceBreaksItsPromise(t *testing.T) {
	t.Parallel()
	for mistake, promise := range map[string]string{
		"the next permit is claimed at once":             "one agent at a time may free space",
		"a defragmentation for another agent is ignored": "one member at a time is defragmented",
		"the claim does not compare the lock":            "no permit counts besides the lock",
		"the claim does not compare the permit":          "one agent at a time may free space",
		"the sizes are ignored":                          "the alarm is disarmed only when every database has space",
		"the leader counts as an ordinary member":        "the leader is defragmented last",
		"live data is defragmented":                      "no defragmentation that cannot help",
		"the CORRUPT alarm is ignored":                   "no agent frees space while members hold different data",
		"every agent has a permit":                       "only the agent that may free space",
		"permits are not written again":                  "every alarm ends",
		"the history is not kept":                        "every alarm ends",
	} {
		t.Run(mistake, func(t *testing.T) {
			t.Parallel()
			s := spaceScope{faults: 2, mistake: mistake}
			s.holder = strings.Contains(mistake, "another agent")
			s.live = slices.Contains([]string{"live data is defragmented", "the history is not kept"}, mistake)
			broken, states := s.explore()
			if got, _, _ := strings.Cut(broken, "\n"); got == "" || !strings.HasPrefix(got, promise) {
				t.Errorf("%d states: broke %q, want %q", states, broken, promise)
			}
		})
	}
}
