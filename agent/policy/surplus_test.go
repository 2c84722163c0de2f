// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"slices"
	"testing"
	"time"

	"github.com/quorumd/quorumd/health"
)

// fourVote is what voter n4 sees: n3, whose place it has taken, is well again before anybody has removed it.
func fourVote() View {
	v := promotedBeside()
	v.Lock = Lock{Known: true}
	well(&v)
	return v
}

func TestMoreVotersThanAreWantedAreToldWhenNobodyTakesOneOut(t *testing.T) {
	t.Parallel()
	const even = "4 hosts vote, 3 are wanted; while their number is even none of them is taken down"
	for name, c := range map[string]struct {
		change func(v *View)
		text   string
	}{
		"four of three":            {func(*View) {}, even},
		"where nobody is repaired": {func(v *View) { v.Limits.SickGrace = 0 }, even},
		"a sick one stays there": {func(v *View) {
			v.Limits.SickGrace, v.Hosts[2] = 0, sickView().Hosts[2]
		}, even},
		"a sick one goes":     {func(v *View) { v.Hosts[2] = sickView().Hosts[2] }, ""},
		"three of one":        {func(v *View) { without(v, 3); v.Target.Voters = 1 }, "3 hosts vote, 1 are wanted"},
		"as many as wanted":   {func(v *View) { v.Target.Voters = 5 }, ""},
		"one does not answer": {unreached, ""},
		"just now":            {func(v *View) { v.Cluster.StableFor = time.Second }, ""},
		"an operation is in flight": {func(v *View) {
			v.Op = &Op{Kind: KindReplace, Host: "n1", HostName: "n1", Replaces: 3, Phase: PhasePromoted}
		}, ""},
		"nobody knows": {func(v *View) { v.Cluster.Reachable = false }, ""},
	} {
		v := fourVote()
		c.change(&v)
		told := ""
		d := Decide(v)
		for _, r := range d.Reasons {
			if r.Code == VotersSurplus {
				told = r.Text
			}
		}
		if told != c.text {
			t.Errorf("%s: %q, want %q", name, told, c.text)
		}
	}
	if d := Decide(fourVote()); d.Reasons[0].Code != VotersSurplus || d.Step.Kind != StepNone {
		t.Errorf("at rest it is not what counts: %+v", d)
	}
	beside := fourVote() // where something else counts more it is told beside
	beside.Health = Health{State: health.OK}
	beside.Unit.NotAtBoot = true
	if d := Decide(beside); !slices.ContainsFunc(d.Reasons, func(r Reason) bool { return r.Code == VotersSurplus }) {
		t.Errorf("it is not told: %+v", d.Reasons)
	}
}
