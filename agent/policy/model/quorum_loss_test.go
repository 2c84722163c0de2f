// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package model

import (
	"maps"
	"testing"

	"github.com/quorumd/quorumd/agent/policy"
)

func TestThePolicyKeepsItsPromisesAfterQuorumLoss(t *testing.T) {
	t.Parallel()
	steps, reasons := map[policy.StepKind]bool{}, map[policy.ReasonCode]bool{}
	for _, sc := range QuorumLosses() {
		r := ExploreQuorumLoss(t.Context(), sc, 0)
		t.Log(r)
		if r.Breach != nil {
			t.Fatalf("%s: %s: %s\n%s", sc.Name, r.Breach.Promise, r.Breach.Text, r.Breach.Trace)
		}
		if !r.Complete {
			t.Errorf("%s: the exploration is incomplete", sc.Name)
		}
		maps.Copy(steps, r.Steps)
		maps.Copy(reasons, r.Reasons)
	}
	for kind, how := range Steps() {
		if how == recovers && !steps[kind] {
			t.Errorf("step %s counts as explored after quorum loss, but was never decided", kind)
		}
	}
	for code, how := range Reasons() {
		if how == recovers && !reasons[code] {
			t.Errorf("reason %s counts as explored after quorum loss, but never occurred", code)
		}
	}
}

func TestEveryMistakeInARecoveryBreaksItsPromise(t *testing.T) {
	t.Parallel()
	broken := map[string]bool{}
	for _, m := range QuorumLossMistakes() {
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
	for _, p := range lossPromises() {
		if !broken[p.text] {
			t.Errorf("no mistake breaks %s, %q: add one to show that it can fail", p.name, p.text)
		}
	}
}
