// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package act

import (
	"testing"

	"github.com/quorumd/quorumd/agent/local"
	"github.com/quorumd/quorumd/agent/policy"
	"github.com/quorumd/quorumd/agent/record"
)

func TestATryToJoinCountsAndNothingElse(t *testing.T) {
	t.Parallel()
	a := New(options(t, local.HostFiles{}))
	for _, c := range []struct {
		name, kind, host string
		phase            policy.OpPhase
		outcome          policy.ReasonCode
		want             bool
	}{
		{"a join", policy.KindJoin, "2", policy.PhaseAdded, policy.LearnerStalled, true},
		{"a join that went well", policy.KindJoin, "2", policy.PhasePromoted, policy.Joined, true},
		{"another host's join", policy.KindJoin, "1", policy.PhaseAdded, policy.LearnerStalled, false},
		{"a join that it has not begun", policy.KindJoin, "2", policy.PhaseAdded, policy.Disowned, false},
		{"a replacement of one that came back", policy.KindReplace, "2", policy.PhaseBegun, policy.MemberLive, false},
		{"one that never got to it", policy.KindReplace, "2", policy.PhaseBegun, policy.JoinTooLong, true},
		{"another host's", policy.KindReplace, "1", policy.PhaseBegun, policy.JoinTooLong, false},
		{"one of which etcd was told", policy.KindReplace, "2", policy.PhaseRollback, policy.MemberLive, true},
		{"a cycle", policy.KindCycle, "2", policy.PhaseBack, policy.Cycled, false},
	} {
		op := record.Op{Kind: c.kind, Host: c.host, Phase: string(c.phase)}
		if got := a.joined(&op, c.outcome); got != c.want {
			t.Errorf("%s counts: %t", c.name, got)
		}
	}
}
