// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package policy

import "testing"

func TestOnlyACompletedPlanLeavesARecord(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		step     Step
		survivor bool
		want     RecoveryNote
	}{
		"the survivor continues alone": {Step{Kind: StepEndRecovery, Outcome: Recovered}, true, RecoveryAnnounced},
		"another host joins":           {Step{Kind: StepEndRecovery, Outcome: Recovered}, false, RecoveryJoins},
		"the quorum is back": {
			Step{Kind: StepEndRecovery, Outcome: QuorumRestored}, true, RecoveryLeavesNothing,
		},
		"the plan was given up": {
			Step{Kind: StepEndRecovery, Outcome: RecoveryGivenUp}, true, RecoveryLeavesNothing,
		},
		"the step does not end the plan": {Step{Kind: StepPlaceCopy}, true, RecoveryLeavesNothing},
	} {
		v := View{Recovery: &Recovery{Survivor: c.survivor}}
		if got := noteRecovery(v, c.step); got != c.want {
			t.Errorf("%s: the record is %d, want %d", name, got, c.want)
		}
	}
	if got := noteRecovery(View{}, Step{}); got != RecoveryLeavesNothing {
		t.Errorf("without a plan, the record is %d", got)
	}
}
