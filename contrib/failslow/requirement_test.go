// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"strings"
	"testing"
	"time"
)

// figures returns a report on one goal.
func figures(g goal, change func(*tally)) *report {
	t := &tally{Name: string(g), lasted: 30 * year, Faults: 240, Found: 240}
	for range t.Faults {
		t.times = append(t.times, time.Second)
	}
	change(t)
	t.finish()
	return &report{Goals: []*tally{t}}
}

func TestAMissedRequirementIsNamed(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		goal   goal
		change func(*tally)
		want   string
	}{
		"all found":             {goalSteep, func(*tally) {}, ""},
		"one missed":            {goalSteep, func(t *tally) { t.Found-- }, ""},
		"many missed":           {goalSteep, func(t *tally) { t.Found = 200 }, "recall is at most 0.88, want 0.99"},
		"few false transfers":   {goalHealthy, func(t *tally) { t.FalseTransfers.Count = 35 }, ""},
		"many false transfers":  {goalHealthy, func(t *tally) { t.FalseTransfers.Count = 90 }, "false transfers"},
		"many transfers":        {goalHealthy, func(t *tally) { t.Transfers.Count = 1200 }, "limit 30"},
		"one false replacement": {goalHealing, func(t *tally) { t.FalseReplacements.Count = 1 }, "1 false repl"},
		"many record writes":    {goalHealthy, func(t *tally) { t.writes = 30 * 366 * 11 }, "record writes"},
	} {
		err := figures(c.goal, c.change).missed()
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
}
