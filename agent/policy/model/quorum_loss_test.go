// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package model

import (
	"maps"
	"slices"
	"testing"

	"github.com/quorumd/quorumd/agent/policy"
)

func TestThePolicyKeepsItsPromisesAfterQuorumLoss(t *testing.T) {
	t.Parallel()
	steps, reasons := map[policy.StepKind]bool{}, map[policy.ReasonCode]bool{}
	for _, sc := range QuorumLosses() {
		r := ExploreQuorumLoss(t.Context(), sc, 0)
		checkResult(t, sc.Name, r)
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
	var all []seeded
	for _, m := range QuorumLossMistakes() {
		all = append(all, seeded{m.Name, promise{m.Promise, m.Text}, m.Explore})
	}
	checkSeeded(t, all, slices.Collect(maps.Values(lossPromises())))
}
