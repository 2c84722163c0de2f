// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package publish

import (
	"testing"

	"github.com/quorumd/quorumd/agent/policy"
)

func TestARefusalHasTheTextOfItsReason(t *testing.T) {
	t.Parallel()
	d := policy.Decision{Waiting: policy.BackingOff, Reasons: []policy.Reason{
		{Code: policy.TargetMet, Text: "3 of 3 voters stand"}, {Code: policy.BackingOff, Text: "the next attempt is " +
			"in 5s"},
	}}
	if got := waitingText(d); got != "the next attempt is in 5s" {
		t.Errorf("the text is %q", got)
	}
	d.Reasons, d.Step = nil, policy.Step{Kind: policy.StepReleaseLock} // the reasons come in the next round
	if got := waitingText(d); got != policy.BackingOff.Info().Meaning {
		t.Errorf("the text is %q", got)
	}
}
