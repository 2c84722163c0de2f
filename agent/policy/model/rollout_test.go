// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package model

import "testing"

func TestThePolicyKeepsItsPromisesInARollout(t *testing.T) {
	t.Parallel()
	for _, sc := range Rollouts() {
		r := ExploreRollout(t.Context(), sc, 0)
		t.Log(r)
		if r.Breach != nil {
			t.Fatalf("%s: %s: %s\n%s", sc.Name, r.Breach.Promise, r.Breach.Text, r.Breach.Trace)
		}
		if !r.Complete {
			t.Errorf("%s: the exploration is incomplete", sc.Name)
		}
	}
}

func TestEveryMistakeInARolloutBreaksItsPromise(t *testing.T) {
	t.Parallel()
	broken := map[string]bool{}
	for _, m := range RolloutMistakes() {
		broken[m.Text] = true
		t.Run(m.Name, func(t *testing.T) {
			t.Parallel()
			switch r := m.Explore(t.Context()); {
			case r.Breach == nil:
				t.Errorf("%d states explored, complete: %t, no breach; want %s: %s", r.States, r.Complete,
					m.Promise, m.Text)
			case r.Breach.Text != m.Text:
				t.Errorf("found %s: %s; want %s: %s\n%s", r.Breach.Promise, r.Breach.Text, m.Promise, m.Text,
					r.Breach.Trace)
			default:
				t.Logf("%s after %d states, depth %d", r.Breach.Promise, r.States, r.Depth)
			}
		})
	}
	for _, p := range rolloutPromises() {
		if !broken[p.text] {
			t.Errorf("no mistake breaks %s, %q: add one to show that it can fail", p.name, p.text)
		}
	}
}
