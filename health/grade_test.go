// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package health

import (
	"math"
	"testing"
	"time"
)

func TestTwiceAsBadIsOneGradeHigher(t *testing.T) {
	t.Parallel()
	free := Limit{Unit: "%", Enter: 10, Leave: 12, Below: true}
	used := Limit{Unit: "%", Enter: 80, Leave: 70}
	off := Limit{Unit: "s", Enter: 1, Leave: 0.5}
	soon := Limit{Unit: "days", Enter: 3, Leave: 5, Below: true}
	for what, c := range map[string]struct {
		limit   Limit
		was, is float64
		twice   bool
	}{
		"half of what was free":          {free, 8, 3.9, true},
		"more than half of it":           {free, 8, 5, false},
		"nothing is free":                {free, 10, 0, true},
		"half of what was left":          {used, 81, 91, true},
		"less than half of it":           {used, 81, 88, false},
		"all is used, and more":          {used, 99, 120, true},
		"twice as much":                  {off, 2, 4, true},
		"not quite":                      {off, 2, 3.9, false},
		"it was on its way back":         {off, 0.6, 1.9, false},
		"half of the time":               {soon, 2, 1, true},
		"no end":                         {off, 2, math.Inf(1), true},
		"it is as bad as it could be":    {used, 100, 100, false},
		"counted from nothing":           {Limit{}, 1, 2, true},
		"it has become better":           {used, 95, 85, false},
		"what is free has become better": {free, 2, 9, false},
	} {
		was, is := c.limit.grade(c.was), c.limit.grade(c.is)
		if (is >= was+1) != c.twice || !(was > 0 && is > 0) || math.IsInf(is, 0) {
			t.Errorf("%s: %g is of grade %g, and %g of %g", what, c.was, was, c.is, is)
		}
	}
}

// muted mutes a current finding, as an operator does.
func (b *bench) muted(code Code) Mute {
	b.t.Helper()
	for _, f := range b.result.Findings {
		if f.Code == code {
			return Mute{Code: code, State: f.State, Count: f.Count, Grade: f.Grade, Until: time.Unix(1, 0)}
		}
	}
	b.t.Fatalf("%s is not found: %+v", code, b.result.Findings)
	return Mute{}
}

func TestAMuteEndsWhenItsFindingIsTwiceAsBad(t *testing.T) {
	t.Parallel()
	for code, c := range map[Code]struct{ first, same, worse func(*bench) }{
		MemoryLow: {
			func(b *bench) { b.machine.MemoryAvailable = known(8) },
			func(b *bench) { b.machine.MemoryAvailable = known(5) },
			func(b *bench) { b.machine.MemoryAvailable = known(3) },
		},
		ProcessesKilled: {
			func(b *bench) { b.machine.ProcessesKilled.Value += 2 },
			func(b *bench) { b.machine.ProcessesKilled.Value++ },
			func(b *bench) { b.machine.ProcessesKilled.Value++ },
		},
		EtcdQuotaLow: {
			func(b *bench) { b.etcd.DBSize = known(0.81 * b.etcd.Quota.Value) },
			func(b *bench) { b.etcd.DBSize = known(0.88 * b.etcd.Quota.Value) },
			func(b *bench) { b.etcd.DBSize = known(0.95 * b.etcd.Quota.Value) },
		},
		DriveErrorsGrown: {
			func(b *bench) { b.hardware = driven(func(d *Drive) { d.Errors[0].N = 4 }) },
			func(b *bench) { b.hardware = driven(func(d *Drive) { d.Errors[0].N = 5 }) },
			func(b *bench) { b.hardware = driven(func(d *Drive) { d.Errors[0].N = 6 }) },
		},
	} {
		b := withChecks(t)
		c.first(b)
		b.each(2*time.Minute, ms)
		m := b.muted(code)
		over := func() string { return m.Over(b.result.Findings, time.Unix(0, 0)) }
		c.same(b)
		if b.each(2*time.Minute, ms); over() != "" {
			t.Errorf("%s slightly worse: over because %q", code, over())
		}
		c.worse(b)
		if b.each(2*time.Minute, ms); over() != "it is twice as bad as when it was muted" {
			t.Errorf("%s twice as bad: over because %q", code, over())
		}
	}
}
