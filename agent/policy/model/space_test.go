// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package model

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// explore returns the first broken promise with its trace, or an empty string, and the number of states. It also finds
// worlds from which no course of events without faults ends the alarm, although a permit is left.
func (s spaceScope) explore() (string, int) {
	type edge struct {
		from  int
		event string
	}
	all, came, before := []spaceWorld{s.initial()}, []edge{{-1, ""}}, [][]int{nil}
	number := map[spaceWorld]int{all[0]: 0}
	trace := func(i int) string {
		var lines []string
		for ; came[i].from >= 0; i = came[i].from {
			lines = append(lines, came[i].event)
		}
		slices.Reverse(lines)
		return strings.Join(lines, "\n")
	}
	for i := 0; i < len(all); i++ {
		next, events := s.successors(all[i])
		for k, n := range next {
			at, known := number[n]
			if !known {
				at, number[n] = len(all), len(all)
				all, came, before = append(all, n), append(came, edge{i, events[k]}), append(before, nil)
			}
			if n.breach != "" {
				return n.breach + "\n" + trace(at), len(all)
			}
			if n.faults == all[i].faults {
				before[at] = append(before[at], i)
			}
		}
	}
	ends, queue := make([]bool, len(all)), []int{}
	for i, w := range all {
		if w.done() || w.alarm && w.permits == 0 {
			ends[i], queue = true, append(queue, i)
		}
	}
	for ; len(queue) > 0; queue = queue[1:] {
		for _, p := range before[queue[0]] {
			if !ends[p] {
				ends[p], queue = true, append(queue, p)
			}
		}
	}
	if i := slices.Index(ends, false); i >= 0 {
		return fmt.Sprintf("every alarm ends\n%s\n%+v", trace(i), all[i]), len(all)
	}
	return "", len(all)
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
		"the leader is an ordinary member":               "the leader is defragmented last",
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
