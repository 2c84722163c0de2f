// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"testing"
	"time"
)

func TestAReasonWithACountHasItAsNumbers(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		base func() View
		set  func(v *View, m *Member)
		code ReasonCode
		text string
		want Progress
	}{
		"a learner is behind": {
			joinView, func(_ *View, m *Member) { m.Lag = 1200 }, LearnerBehind,
			"1200 entries behind the leader, limit 100",
			Progress{1200, 100, CountEntries},
		},
		"the lag is unknown": {
			joinView, func(_ *View, m *Member) { m.Lag, m.LagKnown = 1200, false }, LearnerBehind,
			"1200 entries behind the leader, limit 100",
			Progress{},
		},
		"a learner has just started": {
			joinView, func(_ *View, m *Member) { m.LiveFor = 20 * time.Second }, LearnerNotSteady,
			"caught up for 1h of 30s, up for 20s of 1m",
			Progress{20, 60, CountSeconds},
		},
		"a learner has just caught up": {
			joinView, func(_ *View, m *Member) { m.SteadyFor = 3 * time.Second }, LearnerNotSteady,
			"caught up for 3s of 30s, up for 1h of 1m",
			Progress{3, 30, CountSeconds},
		},
		"a returning member is behind": {
			backView, func(_ *View, m *Member) { m.Lag = 700 }, Returning,
			"the member is 700 entries behind the leader, limit 100",
			Progress{700, 100, CountEntries},
		},
		"a returning member has served for a moment": {
			backView, func(_ *View, m *Member) { m.LiveFor = time.Second }, Returning,
			"the member has served for 1s of 10s",
			Progress{1, 10, CountSeconds},
		},
		"a returning member does not serve": {
			backView, func(_ *View, m *Member) { m.Live = false }, Returning, "the member does not serve yet",
			Progress{},
		},
		"a returning member reports errors": {
			backView, func(_ *View, m *Member) { m.Errors = true }, Returning, "the member reports errors",
			Progress{},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			v := c.base()
			c.set(&v, &v.Cluster.Members[2])
			r := Decide(v).Reasons[0]
			got, counted := ProgressOf(v, r.Code)
			if r.Code != c.code || r.Text != c.text || got != c.want && counted ||
				counted != (c.want != Progress{}) {
				t.Errorf("%s: %s, counted as %+v (%v), not %+v", r.Code, r.Text, got, counted, c.want)
			}
		})
	}
}

func TestAReasonWithoutACountHasNone(t *testing.T) {
	t.Parallel()
	v := joinView()
	for _, info := range Reasons() {
		if count, counted := ProgressOf(v, info.Code); counted != (info.Code == LearnerBehind) {
			t.Errorf("%s is counted as %+v: %v", info.Code, count, counted)
		}
	}
	if _, counted := ProgressOf(View{}, LearnerBehind); counted {
		t.Error("a host without a member has a count")
	}
}
