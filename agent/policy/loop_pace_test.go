// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package policy

import "testing"

func TestAHostLooksInEveryTurnWhenItMayHaveToAct(t *testing.T) {
	t.Parallel()
	for what, c := range map[string]struct {
		knows Attention
		want  bool
	}{
		"a spare that others go before":                {Attention{}, false},
		"one that was attentive until now":             {Attention{Attended: true}, false},
		"one that was told to make a cluster":          {Attention{Bootstraps: true}, true},
		"one that was asked to remove a member":        {Attention{Removes: true}, true},
		"one with the lock":                            {Attention{HoldsLock: true}, true},
		"one whose step is under way":                  {Attention{Steps: true}, true},
		"a member":                                     {Attention{Listed: true}, true},
		"one that is called":                           {Attention{Called: true}, true},
		"one that goes first":                          {Attention{GoesFirst: true}, true},
		"one in its own operation":                     {Attention{Operated: true}, true},
		"a spare that is cut off":                      {Attention{Silent: true}, false},
		"an attentive host that is cut off":            {Attention{Silent: true, Attended: true}, true},
		"one with the lock that is cut off":            {Attention{Silent: true, HoldsLock: true}, true},
		"one that makes a cluster where there is none": {Attention{Silent: true, Bootstraps: true}, true},
		"one that is cut off, and was listed":          {Attention{Silent: true, Listed: true}, false},
	} {
		if got := Attends(c.knows); got != c.want {
			t.Errorf("%s: %t, want %t", what, got, c.want)
		}
	}
}

func TestASpareGoesFirstWhenItHasSeenThatNobodyElseDoes(t *testing.T) {
	t.Parallel()
	for what, c := range map[string]struct {
		edit func(*View)
		want bool
	}{
		"a spare that is ready":          {func(*View) {}, true},
		"one that only waits to cool":    {func(v *View) { v.IdleFor = 0 }, true},
		"one that rests, and has looked": {func(v *View) { v.Resting, v.Looked = true, true }, true},
		"one that rests":                 {func(v *View) { v.Resting = true }, false},
		"one that is cut off":            {func(v *View) { v.Cluster = Cluster{} }, false},
		"one that only observes":         {func(v *View) { v.Self.Mode = Observe }, false},
		"one that backs off":             {func(v *View) { v.Backoff = 1 }, false},
		"one that another host is before": {func(v *View) {
			v.Hosts = append(v.Hosts, ready("n0", RoleSpare))
			v.Hosts[len(v.Hosts)-1].P99 = 1
			v.Hosts[2].P99 = 1 << 30
		}, false},
		"one that is not needed": {func(v *View) { v.Target = Target{Voters: 1} }, false},
	} {
		v := spareView()
		c.edit(&v)
		if d := Decide(v); d.First != c.want {
			t.Errorf("%s: %t, want %t; reasons %v", what, d.First, c.want, d.Reasons)
		}
	}
	if v := threeVoters(); Decide(v).First {
		t.Error("a voter goes first")
	}
}
