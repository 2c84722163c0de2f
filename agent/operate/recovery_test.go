// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package operate

import (
	"slices"
	"testing"

	"github.com/quorumd/quorumd/agent/hoststate"
	"github.com/quorumd/quorumd/agent/policy"
	"github.com/quorumd/quorumd/agent/recovery"
)

func TestTheFactsTellOfThePlansThatAHostWasToldAndHasNotCarriedOut(t *testing.T) {
	t.Parallel()
	plan := func(id, givenUp string) hoststate.Recovery {
		return hoststate.Recovery{Plan: id, Survivor: "n1", GivenUp: givenUp}
	}
	stands, leaving := plan("stands", ""), plan("stands", "root")
	ended := func(code policy.ReasonCode) *hoststate.RecoveryEnd {
		return &hoststate.RecoveryEnd{Recovery: plan("last", ""), Code: code}
	}
	given := recovery.PlanTold{ID: "last", Survivor: "n1", GivenUp: true}
	for name, c := range map[string]struct {
		stands *hoststate.Recovery
		last   *hoststate.RecoveryEnd
		want   []recovery.PlanTold
	}{
		"none":            {nil, nil, nil},
		"one is in force": {&stands, nil, []recovery.PlanTold{{ID: "stands", Survivor: "n1"}}},
		"it is about to be given up": {
			&leaving, nil, []recovery.PlanTold{{ID: "stands", Survivor: "n1", GivenUp: true}},
		},
		"one was given up":    {nil, ended(policy.RecoveryGivenUp), []recovery.PlanTold{given}},
		"the quorum was back": {nil, ended(policy.QuorumBack), []recovery.PlanTold{given}},
		"one was carried out": {nil, ended(policy.Recovered), nil},
		"one after the other": {
			&stands, ended(policy.RecoveryGivenUp), []recovery.PlanTold{{ID: "stands", Survivor: "n1"}, given},
		},
	} {
		if got := plansTold(c.stands, c.last); !slices.Equal(got, c.want) {
			t.Errorf("%s: %+v, want %+v", name, got, c.want)
		}
	}
}
