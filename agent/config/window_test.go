// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"testing"
	"time"
)

func TestAHostMayBeTakenDownAutomaticallyInAWindowAndOutsideOfBlackouts(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		m    Maintenance
		want string
	}{
		"in the window": {Maintenance{Windows: []string{"daily 02:00-05:00 UTC"}}, ""},
		"in one of two": {Maintenance{Windows: []string{"daily 05:00-06:00 UTC", "Sun 03:00-04:00 UTC"}}, ""},
		"outside":       {Maintenance{Windows: []string{"daily 04:00-05:00 UTC"}}, "no maintenance window is open"},
		"no window":     {Maintenance{}, "no maintenance window is open"},
		"a blackout": {
			Maintenance{Windows: []string{"daily 02:00-05:00 UTC"}, Blackouts: []string{"11-27..11-30"}},
			"a blackout is in effect: 11-27..11-30",
		},
		"another day's": {Maintenance{Windows: []string{"daily 02:00-05:00 UTC"}, Blackouts: []string{"12-24"}}, ""},
	} {
		if got := c.m.Shut(time.Date(2026, 11, 29, 3, 0, 0, 0, time.UTC)); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}
