// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"fmt"
	"strings"
	"testing"
)

func TestAPlanIsAppliedAndGivenUpOnlyIfAllowed(t *testing.T) {
	t.Parallel()
	v := View{Self: Self{Mode: Manage}}
	stands := &Recovery{Plan: "x", By: "bob"}
	for name, got := range map[string]*Refusal{
		"":                   AgainstRecovery(v, ""),
		"only observes":      AgainstRecovery(View{Self: Self{Mode: Observe}}, ""),
		"cluster.id is 7":    AgainstRecovery(v, "7"),
		"plan x is in force": stands.AgainstPlan("y"),
		"none is in force":   (*Recovery)(nil).AgainstGivingUp(false),
		"begun to move":      stands.AgainstGivingUp(true),
	} {
		if (got == nil) != (name == "") || !strings.Contains(fmt.Sprint(got), name) {
			t.Errorf("%q: %+v", name, got)
		}
	}
	for _, r := range []*Refusal{
		stands.AgainstPlan("x"), (*Recovery)(nil).AgainstPlan("x"), stands.AgainstGivingUp(false),
	} {
		if r != nil {
			t.Errorf("%+v", r)
		}
	}
}

func TestOnlyASnapshotToBeFetchedNeedsAStore(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ fetched, placed, refused bool }{
		{false, false, false}, {false, true, false}, {true, true, false}, {true, false, true},
	} {
		if r := AgainstSnapshot(c.fetched, c.placed); (r != nil) != c.refused {
			t.Errorf("fetched %t, with a source %t: %+v", c.fetched, c.placed, r)
		}
	}
}
