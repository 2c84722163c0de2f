// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
)

// requirement is what a goal's figures must reach. A zero field requires nothing.
type requirement struct {
	goal   goal
	recall float64 // lowest accepted share of faults that are found in time
	// falseTransfers and transfers are the highest accepted numbers per host-year.
	falseTransfers, transfers float64
	noReplacement             bool    // no false replacement is accepted
	writesPerDay              float64 // highest accepted number of record writes per host per day
}

func requirements() []requirement {
	return []requirement{
		{goal: goalSteep, recall: 0.99},
		{goal: goalMedium, recall: 0.95},
		{goal: goalTails, recall: 0.90},
		{goal: goalHealing, noReplacement: true},
		{goal: goalCommon, noReplacement: true},
		{goal: goalHealthy, falseTransfers: 1, transfers: 30, noReplacement: true, writesPerDay: 10},
	}
}

// missed returns an error that names the requirements that are certainly missed: even the more favorable bound of the
// figure misses them. Record writes have no bounds, and a single false replacement is a miss.
func (r *report) missed() error {
	var all []error
	miss := func(t *tally, format string, args ...any) {
		all = append(all, fmt.Errorf(t.Name+": "+format, args...))
	}
	for _, q := range requirements() {
		for _, t := range r.Goals {
			if t.Name != string(q.goal) {
				continue
			}
			if t.Recall != nil && t.Recall.High < q.recall {
				miss(t, "recall is at most %.2f, want %.2f", t.Recall.High, q.recall)
			}
			if q.falseTransfers > 0 && t.FalseTransfers.Low > q.falseTransfers {
				miss(t, "at least %.3g false transfers per host-year, limit %.3g", t.FalseTransfers.Low,
					q.falseTransfers)
			}
			if q.transfers > 0 && t.Transfers.Low > q.transfers {
				miss(t, "at least %.3g transfers per host-year, limit %.3g", t.Transfers.Low, q.transfers)
			}
			if q.noReplacement && t.FalseReplacements.Count > 0 {
				miss(t, "%d false replacements, limit 0", t.FalseReplacements.Count)
			}
			if q.writesPerDay > 0 && t.WritesPerDay > q.writesPerDay {
				miss(t, "%.1f record writes per host-day, limit %.3g", t.WritesPerDay, q.writesPerDay)
			}
		}
	}
	return errors.Join(all...)
}
