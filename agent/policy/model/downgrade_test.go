// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package model

import (
	"strings"
	"testing"
)

func TestNoEtcdIsStoppedForADowngradeBeforeTheOlderOneCanStart(t *testing.T) {
	t.Parallel()
	for _, s := range []downgradeScope{
		{faults: 1},
		{aborts: true, faults: 1},
		{others: true, aborts: true, faults: 1},
		{joins: true, aborts: true, faults: 1},
	} {
		broken, states := s.explore()
		t.Logf("job of an operator %t, a host joins %t, aborted %t, %d faults: %d states", s.others, s.joins, s.aborts,
			s.faults, states)
		if broken != "" {
			t.Fatalf("%+v: %s", s, broken)
		}
	}
}

func TestEveryMistakeInADowngradeBreaksItsPromise(t *testing.T) {
	t.Parallel()
	for mistake, promise := range map[string]string{
		"neither the job nor the storage versions are read": "no etcd is stopped before the older one can start",
		"etcd lowers the cluster version at once":           "no etcd is stopped before the older one can start",
		"the storage versions are ignored":                  "no etcd is stopped before the older one can start",
		"a member that is down counts as live":              "the job is enabled only while every member answers",
		"operations in flight are ignored":                  "the job is not enabled while a host joins",
		"the job is cancelled while a host is down":         "the job is not cancelled while a host is down",
		"every job is quorumd's":                            "no job of an operator is cancelled",
		"an abort leaves the job":                           "every downgrade ends, and leaves no job",
		"the job is not recorded":                           "every downgrade ends, and leaves no job",
		"a call takes effect at once":                       "every downgrade ends, and leaves no job",
		"the lowered cluster version is forgotten":          "every downgrade ends, and leaves no job",
	} {
		t.Run(mistake, func(t *testing.T) {
			t.Parallel()
			s := downgradeScope{aborts: true, faults: 1, mistake: mistake}
			s.others = mistake == "every job is quorumd's"
			s.joins = mistake == "operations in flight are ignored"
			s.aborts = mistake != "the lowered cluster version is forgotten"
			broken, states := s.explore()
			if got, _, _ := strings.Cut(broken, "\n"); got == "" || !strings.HasPrefix(got, promise) {
				t.Errorf("%d states: broke %q, want %q", states, broken, promise)
			}
		})
	}
}
