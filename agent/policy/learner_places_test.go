// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"strings"
	"testing"
)

func TestAStandbyThatBecomesAPermanentLearnerReportsThatItTakesTheOnlyPlace(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		change func(v *View)
		want   string // part of the text; empty if nothing is reported
	}{
		"etcd's default": {
			func(v *View) { limited(v, 1) },
			"next to permanent learner n9, --max-learners must be at least 2, and the same on every member: 1 on n1, 1 on n2",
		},
		"a place is left":    {func(*View) {}, ""},
		"one is smaller":     {func(v *View) { v.Cluster.Members[1].MaxLearners = 1 }, "on every member: 1 on n2"},
		"one is larger":      {func(v *View) { v.Cluster.Members[1].MaxLearners = 3 }, "differ, from 2 to 3"},
		"one is not known":   {func(v *View) { v.Cluster.Members[1].MaxLearners = 0 }, ""},
		"none is known":      {func(v *View) { limited(v, 0) }, ""},
		"no permanent one":   {func(v *View) { v.Self.Learner, v.Cluster.Members[3].Permanent = false, false }, ""},
		"etcd 3.5 on one":    {func(v *View) { v.Cluster.Members[0].Version = Version{3, 5, 35} }, "1 on n1"},
		"of another cluster": {func(v *View) { limited(v, 1); v.Cluster.ExpectedID = 5 }, ""},
	} {
		v := permanentView()
		c.change(&v)
		text, taken := learnerPlacesTaken(v)
		if taken != (c.want != "") || !strings.Contains(text, c.want) {
			t.Errorf("%s: %q, %t", name, text, taken)
		}
	}
	for _, v := range []View{permanentView(), seenBy(permanentView(), 1, "n1")} {
		if limited(&v, 1); v.Self.ID == "n1" {
			v.Self.Learner, v.Self.StandbyID = false, 0
		}
		d := Decide(v)
		if len(d.Reasons) < 2 || d.Reasons[0].Code != Idle || !hasCode(d.Cautions(), LearnerLimit) {
			t.Errorf("%s: %+v", v.Self.ID, d.Reasons)
		}
	}
}
