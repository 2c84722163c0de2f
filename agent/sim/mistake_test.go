// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"strings"
	"testing"
)

// seedsForAMistake is the maximum number of seeds that the test tries for each mistake.
const seedsForAMistake = 100

func TestEverySeededMistakeIsFound(t *testing.T) {
	t.Parallel()
	for i, m := range Mistakes() {
		if i%6 != 0 && !many() {
			continue // from -sim.hours=1000 on, the test looks for all of them
		}
		t.Run(m.Name, func(t *testing.T) {
			t.Parallel()
			for seed := range uint64(seedsForAMistake) {
				r := run(t, Options{Seed: seed, Mistake: m})
				if r.Breach != nil && r.Breach.Promise == m.Promise && strings.Contains(r.Breach.Text, m.Text) {
					t.Logf("found with seed %d: %v", seed, r.Breach)
					return
				}
				if r.Breach != nil {
					t.Logf("seed %d finds: %v", seed, r.Breach)
				}
			}
			t.Errorf("not found in %d seeds: a gap in the simulation", seedsForAMistake)
		})
	}
}
