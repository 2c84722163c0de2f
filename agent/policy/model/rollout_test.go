// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package model

import (
	"context"
	"maps"
	"slices"
	"testing"
)

func TestThePolicyKeepsItsPromisesInARollout(t *testing.T) {
	t.Parallel()
	for _, sc := range Rollouts() {
		checkResult(t, sc.Name, ExploreRollout(t.Context(), sc, 0))
	}
}

func TestEveryMistakeInARolloutBreaksItsPromise(t *testing.T) {
	t.Parallel()
	var all []seeded
	for _, m := range RolloutMistakes() {
		all = append(all, seeded{m.Name, promise{m.Promise, m.Text}, m.Explore})
	}
	checkSeeded(t, all, slices.Collect(maps.Values(rolloutPromises())))
}

// seeded is a mistake with the promise that it must break.
type seeded struct {
	name    string
	promise promise
	explore func(context.Context) Result
}

// checkSeeded checks that each mistake breaks its promise first, and that each promise is broken by a mistake.
func checkSeeded(t *testing.T, all []seeded, promises []promise) {
	t.Helper()
	broken := map[string]bool{}
	for _, m := range all {
		broken[m.promise.text] = true
		t.Run(m.name, func(t *testing.T) {
			t.Parallel()
			switch r := m.explore(t.Context()); {
			case r.Breach == nil:
				t.Errorf("%d states explored, complete: %t, no breach; want %s: %s", r.States, r.Complete,
					m.promise.name, m.promise.text)
			case r.Breach.Text != m.promise.text:
				t.Errorf("found %s: %s; want %s: %s\n%s", r.Breach.Promise, r.Breach.Text, m.promise.name,
					m.promise.text, r.Breach.Trace)
			default:
				t.Logf("%s after %d states, depth %d", r.Breach.Promise, r.States, r.Depth)
			}
		})
	}
	for _, p := range promises {
		if !broken[p.text] {
			t.Errorf("no mistake breaks %s, %q: add one to show that it can fail", p.name, p.text)
		}
	}
}
