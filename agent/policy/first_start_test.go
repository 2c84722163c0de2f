// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package policy_test

import (
	"testing"

	. "github.com/quorumd/quorumd/agent/policy"
)

func TestTheStartGuardNeedsCompleteKnowledge(t *testing.T) {
	t.Parallel()
	for i := range 1 << 4 {
		f := FirstStart{Manages: i&1 != 0, AgentStarts: i&2 != 0, Decided: i&4 != 0, NoMember: i&8 != 0}
		want := f == FirstStart{Manages: true, AgentStarts: true, NoMember: true}
		if f.StartGuarded() != want {
			t.Errorf("%+v: guarded: %t, want %t", f, f.StartGuarded(), want)
		}
	}
}
