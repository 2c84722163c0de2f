// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package health

import (
	"slices"
	"strings"
	"testing"
	"time"
)

// plugged is a bench of a healthy member with two checks of the operator's own, of which raid gates joins.
func plugged(t *testing.T) *bench {
	t.Helper()
	limits := DefaultThresholds()
	limits.Plugins = []ExternalCheck{
		{Name: "load", Path: "/x/load", Interval: 10 * time.Second},
		{Name: "raid-a", Path: "/x/raid-a", Gates: Joins, Interval: 10 * time.Second},
	}
	b := newBench(t, limits)
	b.member = true
	b.each(6*time.Minute, ms)
	return b
}

// pluginSays has a plugin say something for a minute, anew every ten seconds.
func (b *bench) pluginSays(name string, s State, text string) {
	i := slices.IndexFunc(b.plugins, func(r ExternalCheckReading) bool { return r.Name == name })
	if i < 0 {
		b.plugins = append(b.plugins, ExternalCheckReading{Name: name})
		i = len(b.plugins) - 1
	}
	b.plugins = slices.Clone(b.plugins)
	for range 6 {
		r := &b.plugins[i]
		r.Runs, r.State, r.Text, r.Absent = r.Runs+1, s, text, ""
		b.each(10*time.Second, ms)
	}
}

func TestAPluginIsBelievedWhenItSaysTheSameAgainAndGatesWhatItIsToldTo(t *testing.T) {
	t.Parallel()
	b := plugged(t)
	if b.verdict.State != OK {
		t.Fatalf("the verdict is %s: %s", b.verdict.State, b.verdict.Text)
	}
	b.plugins = []ExternalCheckReading{{Name: "load", Runs: 1, State: Slow, Text: "load 93"}}
	b.each(time.Minute, ms)
	if b.verdict.State != OK || len(b.verdict.Findings) != 0 {
		t.Errorf("said once it is believed: %+v", b.verdict.Findings)
	}
	b.pluginSays("load", Slow, "load 93")
	if f := b.verdict.Findings; b.verdict.State != OK || len(f) != 1 || f[0].Code != "PLUGIN_LOAD" ||
		f[0].State != Slow || f[0].Text != "load 93" || f[0].Gates != Nothing {
		t.Errorf("the verdict is %s, found is %+v", b.verdict.State, f)
	}
	b.pluginSays("raid-a", Warm, "resync 3 %")
	if v := b.verdict; v.State != Warm || v.Code != "PLUGIN_RAID_A" || v.Gates != Joins || len(v.Findings) != 2 {
		t.Errorf("the verdict is %s %s gates %v: %+v", v.State, v.Code, v.Gates.Names(), v.Findings)
	}
	b.pluginSays("raid-a", OK, "clean")
	b.pluginSays("raid-a", OK, "clean")
	b.pluginSays("load", Warm, "load 9")
	if v := b.verdict; v.State != OK || len(v.Findings) != 1 || v.Findings[0].State != Warm {
		t.Errorf("the verdict is %s, found is %+v", v.State, v.Findings)
	}
}

func TestAPluginThatCannotTellCountsForNothing(t *testing.T) {
	t.Parallel()
	b := plugged(t)
	b.pluginSays("raid-a", Warm, "resync 3 %")
	b.plugins[0].Absent = "it says UNKNOWN"
	b.each(time.Minute, ms)
	v := b.verdict
	if v.State != OK || len(v.Findings) != 0 || !slices.ContainsFunc(v.NotAvailable, func(a Absence) bool {
		return a.Check == "plugin raid-a" && a.Why == "it says UNKNOWN"
	}) {
		t.Errorf("the verdict is %s, found is %+v, not available %+v", v.State, v.Findings, v.NotAvailable)
	}
}

func TestAPluginThatFallsSilentIsHeldToItsWordForTenIntervalsOnly(t *testing.T) {
	t.Parallel()
	b := plugged(t)
	b.pluginSays("raid-a", Slow, "a leg is lost")
	b.plugins[0].Absent = "it took over 10 s"
	b.each(99*time.Second, ms)
	if v := b.verdict; v.State != Slow || v.Gates != Joins ||
		v.Text != "a leg is lost; it took over 10 s, so this may be stale" {
		t.Fatalf("silent for a while, the verdict is %s, gates %v: %s", v.State, v.Gates.Names(), v.Text)
	}
	b.reborn() // nobody knows how long it was silent before
	b.each(99*time.Second, ms)
	if b.verdict.State != Slow {
		t.Fatalf("after a restart the verdict is %s", b.verdict.State)
	}
	b.changes = nil
	b.each(10*time.Minute, ms)
	if v := b.verdict; v.State != OK || len(v.Findings) > 0 {
		t.Errorf("silent for ten intervals, the verdict is %s: %+v", v.State, v.Findings)
	}
	if len(b.changes) != 1 || b.changes[0].Text != "no result for 100 s: it took over 10 s" {
		t.Errorf("told is %+v", b.changes)
	}
	b.plugins[0].Runs, b.plugins[0].Absent = b.plugins[0].Runs+1, ""
	b.each(10*time.Second, ms)
	if b.verdict.State != OK {
		t.Errorf("said once after that, it is believed: %s", b.verdict.Text)
	}
	b.pluginSays("raid-a", Slow, "a leg is lost")
	if b.verdict.State != Slow {
		t.Errorf("said again, it is not believed: %s", b.verdict.Text)
	}
}

func TestAPluginThatFlapsHasToBeWellForLonger(t *testing.T) {
	t.Parallel()
	b := plugged(t)
	var took []time.Duration
	for range 4 {
		b.pluginSays("load", Warm, "load 9")
		began := b.now
		for len(b.verdict.Findings) > 0 && b.now-began < time.Hour {
			b.pluginSays("load", OK, "load 1")
		}
		took = append(took, b.now-began)
	}
	for i, d := range took[1:] {
		if d < took[i]*3/2 {
			t.Errorf("it was well again after %v", took)
		}
	}
}

func TestTwoPluginsOfOneCodeAreRefused(t *testing.T) {
	t.Parallel()
	limits := DefaultThresholds()
	limits.Plugins = []ExternalCheck{{Name: "a-b"}, {Name: "a_b"}}
	if _, err := New(limits); err == nil || !strings.Contains(err.Error(), "PLUGIN_A_B") {
		t.Error(err)
	}
}
