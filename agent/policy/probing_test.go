// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"testing"

	"github.com/quorumd/quorumd/health"
)

func TestAHostHoldsAMemberUnlessKnownOtherwise(t *testing.T) {
	t.Parallel()
	for _, data := range []DataState{DataUnknown, DataEmpty, DataRemains, DataMember, DataUnreadable} {
		if !HoldsMember(true, true, false, data) || HoldsMember(true, false, false, data) ||
			HoldsMember(true, true, true, data) {
			t.Errorf("data %q: the member list was read, but did not decide", data)
		}
		if HoldsMember(false, false, false, data) == (data == DataEmpty) {
			t.Errorf("data %q, and the member list was not read: holds a member: %t", data, data == DataEmpty)
		}
	}
}

func TestTheProbeWritesInBurstsOnlyWithoutAMemberInAQualifyingRun(t *testing.T) {
	t.Parallel()
	runs, over := health.Figures{QualifyNeed: 9, QualifyDone: 3}, health.Figures{}
	for name, c := range map[string]struct {
		member  bool
		state   health.State
		figures health.Figures
		bursts  bool
	}{
		"a spare's qualifying run": {false, health.Unknown, runs, true},
		"an OK spare's":            {false, health.OK, runs, true},
		"a slow spare's":           {false, health.Slow, runs, true},
		"a failed spare's":         {false, health.Failed, over, false},
		"a recovered spare's":      {false, health.Failed, runs, true},
		"a member's":               {true, health.OK, runs, false},
		"there is none":            {false, health.OK, over, false},
	} {
		if got := MeasuresInBursts(c.member, health.Assessment{State: c.state, Figures: c.figures}); got != c.bursts {
			t.Errorf("%s: in bursts: %t", name, got)
		}
	}
}
