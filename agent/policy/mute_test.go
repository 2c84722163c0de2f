// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"strings"
	"testing"

	"github.com/quorumd/quorumd/health"
)

func TestOnlyALimitedNumberOfFindingsWithoutGatesCanBeMuted(t *testing.T) {
	t.Parallel()
	for _, g := range []health.Gate{health.Joins, health.Leadership, health.Maintenance} {
		r := AgainstMute("X", &health.Check{Gates: g})
		if r == nil || r.Kind != Conflicts || !strings.Contains(r.Text, "cannot be muted") {
			t.Errorf("a finding that gates %v: %+v", g, r)
		}
	}
	if r := AgainstMute("X", &health.Check{}); r != nil {
		t.Errorf("a finding that gates nothing: %+v", r)
	}
	if r := AgainstMute("X", nil); r == nil || r.Kind != NoSuch {
		t.Errorf("a finding that no check reports: %+v", r)
	}
	if r := AgainstMoreMutes(MaxMutes - 1); r != nil {
		t.Errorf("the last mute within the limit: %+v", r)
	}
	if r := AgainstMoreMutes(MaxMutes); r == nil || r.Kind != Conflicts {
		t.Errorf("a mute beyond the limit: %+v", r)
	}
}
