// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package operate

import (
	"slices"
	"testing"

	"github.com/quorumd/quorumd/agent/control"
	"github.com/quorumd/quorumd/agent/hoststate"
	"github.com/quorumd/quorumd/agent/policy"
	"github.com/quorumd/quorumd/agent/recovery"
)

func TestFactsListTheUnfinishedPlansOfAHost(t *testing.T) {
	t.Parallel()
	plan := func(id, givenUp string) hoststate.Recovery {
		return hoststate.Recovery{Recovery: control.Recovery{Plan: id, Survivor: "n1", GivenUp: givenUp}}
	}
	inForce, leaving := plan("current", ""), plan("current", "root")
	ended := func(code policy.ReasonCode) *control.RecoveryEnd {
		return &control.RecoveryEnd{Recovery: plan("last", "").Recovery, Code: code}
	}
	given := recovery.AppliedPlan{ID: "last", Survivor: "n1", GivenUp: true}
	for name, c := range map[string]struct {
		inForce *hoststate.Recovery
		last    *control.RecoveryEnd
		want    []recovery.AppliedPlan
	}{
		"none":            {nil, nil, nil},
		"one is in force": {&inForce, nil, []recovery.AppliedPlan{{ID: "current", Survivor: "n1"}}},
		"it is about to be given up": {
			&leaving, nil, []recovery.AppliedPlan{{ID: "current", Survivor: "n1", GivenUp: true}},
		},
		"one was given up":    {nil, ended(policy.RecoveryGivenUp), []recovery.AppliedPlan{given}},
		"the quorum was back": {nil, ended(policy.QuorumRestored), []recovery.AppliedPlan{given}},
		"one was carried out": {nil, ended(policy.Recovered), nil},
		"one after the other": {
			&inForce, ended(policy.RecoveryGivenUp), []recovery.AppliedPlan{{ID: "current", Survivor: "n1"}, given},
		},
	} {
		if got := appliedPlans(c.inForce, c.last); !slices.Equal(got, c.want) {
			t.Errorf("%s: %+v, want %+v", name, got, c.want)
		}
	}
}
