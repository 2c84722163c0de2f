// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"strings"
	"testing"

	"github.com/quorumd/quorumd/agent/cluster"
	"github.com/quorumd/quorumd/agent/round"
)

func TestAlarmsOfAnyMemberAreReported(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		errors        []string
		intact, roomy bool
		text          string
	}{
		"none":          {nil, true, true, ""},
		"no leader":     {[]string{"etcdserver: no leader"}, true, true, ""},
		"unknown alarm": {[]string{"memberID:1 alarm:DANCE "}, true, true, ""},
		"no space":      {[]string{"memberID:1 alarm:NOSPACE "}, true, false, "n1 raised the alarm NOSPACE"},
		"corrupt": {
			[]string{"memberID:1 alarm:NOSPACE ", "memberID:17 alarm:CORRUPT "},
			false, false,
			"member 11 raised the alarm CORRUPT, n1 raised the alarm NOSPACE",
		},
		"unknown member": {
			[]string{strings.Repeat("9", 99) + "alarm:CORRUPT"},
			false, true,
			"a member raised the alarm CORRUPT",
		},
	} {
		r := &round.Round{}
		r.Membership.Members = []cluster.Member{{ID: 1, Name: "n1"}}
		r.Statuses = map[uint64]cluster.Status{1: {Errors: c.errors}, 2: {Errors: c.errors}}
		if intact, roomy, text := alarmsOf(r); intact != c.intact || roomy != c.roomy || text != c.text {
			t.Errorf("%s: %t, %t, %q", name, intact, roomy, text)
		}
	}
}
