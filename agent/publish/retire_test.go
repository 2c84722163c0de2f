// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package publish

import (
	"testing"

	"github.com/quorumd/quorumd/agent/control"
	"github.com/quorumd/quorumd/agent/policy"
	"github.com/quorumd/quorumd/agent/record"
	"github.com/quorumd/quorumd/agent/round"
)

func TestARetiredHostCanBeSwitchedOffOnceItsOwnMemberIsGone(t *testing.T) {
	t.Parallel()
	const at = "http://10.0.0.3:2380"
	member := policy.Member{ID: 3, Name: "n3", PeerURL: at}
	learner := member
	learner.Learner = true
	for name, c := range map[string]struct {
		view       policy.View
		unreadable bool
		state      string
		role       policy.Role
	}{
		"the host's voter is listed": {
			policy.View{Cluster: members(member)}, false, control.RetiredLeaves, policy.RoleVoter,
		},
		"the host's learner is listed": {
			policy.View{Cluster: members(learner)}, false, control.RetiredLeaves, control.RoleLearner,
		},
		"the host's member is gone, and the operation has not ended": {
			policy.View{Op: &policy.Op{Kind: policy.KindLeave, Host: "id-n3"}}, false, control.RetiredLeaves, "",
		},
		"the host's member is gone": {policy.View{}, false, control.RetiredLeft, ""},
		"a new host's member has the same address": {
			policy.View{Cluster: members(member), Hosts: []policy.Host{{ID: "id-new", PeerURL: at}}},
			false, control.RetiredLeft, "",
		},
		"the record cannot be read": {policy.View{}, true, control.RetiredUnreadable, ""},
	} {
		got := RetiredOf(c.view, round.Retired{
			Host: "id-n3", Unreadable: c.unreadable, Retired: record.Retired{Name: "n3", PeerURL: at, MemberID: 3},
		})
		if got.State != c.state || got.Member != c.role {
			t.Errorf("%s: %s, %q", name, got.State, got.Member)
		}
	}
}

func members(m ...policy.Member) policy.Cluster { return policy.Cluster{Reachable: true, Members: m} }
