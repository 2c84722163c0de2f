// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"testing"

	"github.com/quorumd/quorumd/health"
)

func TestAHostHoldsAMemberWhereNobodyCanSayThatItHoldsNone(t *testing.T) {
	t.Parallel()
	for _, data := range []DataState{DataUnknown, DataEmpty, DataRemains, DataMember, DataUnreadable} {
		if !HoldsMember(true, true, false, data) || HoldsMember(true, false, false, data) ||
			HoldsMember(true, true, true, data) {
			t.Errorf("data %q: the list was read, and is not what counts", data)
		}
		if HoldsMember(false, false, false, data) == (data == DataEmpty) {
			t.Errorf("data %q, and nobody has read the list: it holds a member: %t", data, data == DataEmpty)
		}
	}
}

func TestTheProbeWritesInBurstsOnlyForAQualifyingRunAwayFromAMember(t *testing.T) {
	t.Parallel()
	runs, over := health.Figures{QualifyNeed: 9, QualifyDone: 3}, health.Figures{}
	for name, c := range map[string]struct {
		member bool
		state  health.State
		of     health.Figures
		bursts bool
	}{
		"a spare's run":         {false, health.Unknown, runs, true},
		"of a spare that is OK": {false, health.OK, runs, true},
		"a slow spare's":        {false, health.Slow, runs, true},
		"a failed spare's":      {false, health.Failed, over, false},
		"a mended spare's":      {false, health.Failed, runs, true},
		"a member's":            {true, health.OK, runs, false},
		"there is none":         {false, health.OK, over, false},
	} {
		if got := MeasuresInBursts(c.member, health.Assessment{State: c.state, Figures: c.of}); got != c.bursts {
			t.Errorf("%s: in bursts: %t", name, got)
		}
	}
}
