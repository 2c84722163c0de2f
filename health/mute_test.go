// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package health

import (
	"strings"
	"testing"
	"time"
)

func TestAMuteEndsAtItsTimeOrWhenTheFindingGetsWorse(t *testing.T) {
	t.Parallel()
	now := time.Unix(1e9, 0)
	m := Mute{Code: MemoryLow, State: Warm, Since: now, Until: now.Add(time.Hour)}
	m.Count, m.Grade = 1, 70
	found := func(state State, gates Gate) []Finding {
		return []Finding{
			{Code: DiskFsyncSlow, State: Slow, Gates: Everything},
			{Code: MemoryLow, State: state, Gates: gates},
		}
	}
	for name, c := range map[string]struct {
		found []Finding
		at    time.Duration
		why   string
	}{
		"it is found as it was":     {found(Warm, Nothing), 0, ""},
		"it is not found":           {nil, time.Minute, ""},
		"the last moment":           {found(Warm, Nothing), time.Hour - 1, ""},
		"expired":                   {nil, time.Hour, "expired"},
		"it has become worse":       {found(Slow, Nothing), 0, "got worse: SLOW, was WARM"},
		"as many are found":         {[]Finding{{Code: MemoryLow, State: Warm, Count: 1}}, 0, ""},
		"it is nearly twice as bad": {[]Finding{{Code: MemoryLow, State: Warm, Count: 1, Grade: 70.9}}, 0, ""},
		"it is twice as bad": {
			[]Finding{{Code: MemoryLow, State: Warm, Count: 1, Grade: 71}},
			0,
			"it is twice as bad as when it was muted",
		},
		"more are found": {
			[]Finding{{Code: MemoryLow, State: Warm, Count: 2}},
			0,
			"more instances: 2, was 1",
		},
		"it gates something now": {found(Warm, Joins), 0, "it now gates joins"},
	} {
		if why := m.Over(c.found, now.Add(c.at)); why != c.why && (c.why == "" || !strings.Contains(why, c.why)) {
			t.Errorf("%s: over because %q, want %q", name, why, c.why)
		}
	}
}
