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
	inForce := &Recovery{Plan: "x", By: "bob"}
	for name, got := range map[string]*Refusal{
		"":                           AgainstRecovery(v, ""),
		"only observes":              AgainstRecovery(View{Self: Self{Mode: Observe}}, ""),
		"cluster.id is 7":            AgainstRecovery(v, "7"),
		"plan x is already in force": inForce.AgainstPlan("y"),
		"none is in force":           (*Recovery)(nil).AgainstGivingUp(false),
		"begun to move":              inForce.AgainstGivingUp(true),
	} {
		if (got == nil) != (name == "") || !strings.Contains(fmt.Sprint(got), name) {
			t.Errorf("%q: %+v", name, got)
		}
	}
	for _, r := range []*Refusal{
		inForce.AgainstPlan("x"), (*Recovery)(nil).AgainstPlan("x"), inForce.AgainstGivingUp(false),
	} {
		if r != nil {
			t.Errorf("%+v", r)
		}
	}
}

func TestOnlyASnapshotToBeFetchedNeedsAStore(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ fetched, hasStore, refused bool }{
		{false, false, false}, {false, true, false}, {true, true, false}, {true, false, true},
	} {
		if r := AgainstSnapshot(c.fetched, c.hasStore); (r != nil) != c.refused {
			t.Errorf("fetched %t, with a store %t: %+v", c.fetched, c.hasStore, r)
		}
	}
}
