// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package policy

import "testing"

func TestAHostAsksTheMembersEveryRoundIfItMayHaveToAct(t *testing.T) {
	t.Parallel()
	for what, c := range map[string]struct {
		needs RoundNeeds
		want  bool
	}{
		"a spare with others before it":                {RoundNeeds{}, false},
		"one that asked every round until now":         {RoundNeeds{LookedBefore: true}, false},
		"one with a bootstrap request":                 {RoundNeeds{Bootstraps: true}, true},
		"one with a removal request":                   {RoundNeeds{Removes: true}, true},
		"one with the lock":                            {RoundNeeds{HoldsLock: true}, true},
		"one with a step in progress":                  {RoundNeeds{StepRunning: true}, true},
		"a member":                                     {RoundNeeds{Listed: true}, true},
		"one that the queue names":                     {RoundNeeds{InQueue: true}, true},
		"one that goes first":                          {RoundNeeds{GoesFirst: true}, true},
		"one in its own operation":                     {RoundNeeds{OwnOperation: true}, true},
		"a spare that is cut off":                      {RoundNeeds{StateUnknown: true}, false},
		"a host that asked every round and is cut off": {RoundNeeds{StateUnknown: true, LookedBefore: true}, true},
		"one that is cut off and has the lock":         {RoundNeeds{StateUnknown: true, HoldsLock: true}, true},
		"one that bootstraps a cluster":                {RoundNeeds{StateUnknown: true, Bootstraps: true}, true},
		"one that is cut off, and was listed":          {RoundNeeds{StateUnknown: true, Listed: true}, false},
	} {
		if got := LooksEveryRound(c.needs); got != c.want {
			t.Errorf("%s: %t, want %t", what, got, c.want)
		}
	}
}

func TestASpareGoesFirstIfNoOtherHostDoes(t *testing.T) {
	t.Parallel()
	for what, c := range map[string]struct {
		edit func(*View)
		want bool
	}{
		"a spare that is ready":                       {func(*View) {}, true},
		"one that waits for the cooldown":             {func(v *View) { v.IdleFor = 0 }, true},
		"one that is resting, and has read the hosts": {func(v *View) { v.Resting, v.HostsFresh = true, true }, true},
		"one that is resting":                         {func(v *View) { v.Resting = true }, false},
		"one that is cut off":                         {func(v *View) { v.Cluster = Cluster{} }, false},
		"one that only observes":                      {func(v *View) { v.Self.Mode = Observe }, false},
		"one that backs off":                          {func(v *View) { v.Backoff = 1 }, false},
		"one with another host before it": {func(v *View) {
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
