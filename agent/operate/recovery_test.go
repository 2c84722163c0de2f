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
		"none":               {nil, nil, nil},
		"a plan is in force": {&inForce, nil, []recovery.AppliedPlan{{ID: "current", Survivor: "n1"}}},
		"the plan in force is about to be abandoned": {
			&leaving, nil, []recovery.AppliedPlan{{ID: "current", Survivor: "n1", GivenUp: true}},
		},
		"the last plan was abandoned": {
			nil, ended(policy.RecoveryGivenUp), []recovery.AppliedPlan{given},
		},
		"the last plan ended because the quorum was back": {
			nil, ended(policy.QuorumRestored), []recovery.AppliedPlan{given},
		},
		"the last plan was completed": {nil, ended(policy.Recovered), nil},
		"a plan is in force, and an earlier plan was abandoned": {
			&inForce, ended(policy.RecoveryGivenUp), []recovery.AppliedPlan{{ID: "current", Survivor: "n1"}, given},
		},
	} {
		if got := appliedPlans(c.inForce, c.last); !slices.Equal(got, c.want) {
			t.Errorf("%s: %+v, want %+v", name, got, c.want)
		}
	}
}
