// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"strings"
	"testing"

	"github.com/quorumd/quorumd/health"
)

func TestOnlyALimitedNumberOfFindingsWithoutGateIsMuted(t *testing.T) {
	t.Parallel()
	for _, g := range []health.Gate{health.Joins, health.Leadership, health.Maintenance} {
		r := AgainstMute("X", &health.Check{Gates: g})
		if r == nil || r.Kind != Conflicts || !strings.Contains(r.Text, "cannot be muted") {
			t.Errorf("a finding that gates %v: %+v", g, r)
		}
	}
	if r := AgainstMute("X", &health.Check{}); r != nil {
		t.Errorf("one that gates nothing: %+v", r)
	}
	if r := AgainstMute("X", nil); r == nil || r.Kind != NoSuch {
		t.Errorf("one that no check reports: %+v", r)
	}
	if r := AgainstMoreMutes(MaxMutes - 1); r != nil {
		t.Errorf("the last one: %+v", r)
	}
	if r := AgainstMoreMutes(MaxMutes); r == nil || r.Kind != Conflicts {
		t.Errorf("one too many: %+v", r)
	}
}
