// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package health

import (
	"slices"
	"strings"
	"testing"
	"time"
)

// plugged returns a bench of a healthy member with two external checks; raid-a gates joins.
func plugged(t *testing.T) *bench {
	t.Helper()
	limits := DefaultThresholds()
	limits.ExternalChecks = []ExternalCheck{
		{Name: "load", Path: "/x/load", Interval: 10 * time.Second},
		{Name: "raid-a", Path: "/x/raid-a", Gates: Joins, Interval: 10 * time.Second},
	}
	b := newBench(t, limits)
	b.member = true
	b.each(6*time.Minute, ms)
	return b
}

// externalCheckReports lets an external check report the same result every ten seconds for a minute.
func (b *bench) externalCheckReports(name string, s State, text string) {
	i := slices.IndexFunc(b.externalChecks, func(r ExternalCheckReading) bool { return r.Name == name })
	if i < 0 {
		b.externalChecks = append(b.externalChecks, ExternalCheckReading{Name: name})
		i = len(b.externalChecks) - 1
	}
	b.externalChecks = slices.Clone(b.externalChecks)
	for range 6 {
		r := &b.externalChecks[i]
		r.Runs, r.State, r.Text, r.Absent = r.Runs+1, s, text, ""
		b.each(10*time.Second, ms)
	}
}

func TestAnExternalCheckCountsOnceRepeatedAndGatesAsConfigured(t *testing.T) {
	t.Parallel()
	b := plugged(t)
	if b.result.State != OK {
		t.Fatalf("got %s: %s", b.result.State, b.result.Text)
	}
	b.externalChecks = []ExternalCheckReading{{Name: "load", Runs: 1, State: Slow, Text: "load 93"}}
	b.each(time.Minute, ms)
	if b.result.State != OK || len(b.result.Findings) != 0 {
		t.Errorf("reported once, it counts: %+v", b.result.Findings)
	}
	b.externalCheckReports("load", Slow, "load 93")
	if f := b.result.Findings; b.result.State != OK || len(f) != 1 || f[0].Code != "CHECK_LOAD" ||
		f[0].State != Slow || f[0].Text != "load 93" || f[0].Gates != Nothing {
		t.Errorf("got %s, found %+v", b.result.State, f)
	}
	b.externalCheckReports("raid-a", Warm, "resync 3 %")
	if v := b.result; v.State != Warm || v.Code != "CHECK_RAID_A" || v.Gates != Joins || len(v.Findings) != 2 {
		t.Errorf("got %s %s gates %v: %+v", v.State, v.Code, v.Gates.Names(), v.Findings)
	}
	b.externalCheckReports("raid-a", OK, "clean")
	b.externalCheckReports("raid-a", OK, "clean")
	b.externalCheckReports("load", Warm, "load 9")
	if v := b.result; v.State != OK || len(v.Findings) != 1 || v.Findings[0].State != Warm {
		t.Errorf("got %s, found %+v", v.State, v.Findings)
	}
}

func TestAnExternalCheckWithoutAResultIsIgnored(t *testing.T) {
	t.Parallel()
	b := plugged(t)
	b.externalCheckReports("raid-a", Warm, "resync 3 %")
	b.externalChecks[0].Absent = "it reports UNKNOWN"
	b.each(time.Minute, ms)
	v := b.result
	if v.State != OK || len(v.Findings) != 0 || !slices.ContainsFunc(v.NotAvailable, func(a Absence) bool {
		return a.Check == "external raid-a" && a.Why == "it reports UNKNOWN"
	}) {
		t.Errorf("got %s, found %+v, not available %+v", v.State, v.Findings, v.NotAvailable)
	}
}

func TestASilentExternalCheckKeepsItsFindingForTenIntervals(t *testing.T) {
	t.Parallel()
	b := plugged(t)
	b.externalCheckReports("raid-a", Slow, "a member device is missing")
	b.externalChecks[0].Absent = "it took over 10 s"
	b.each(99*time.Second, ms)
	if v := b.result; v.State != Slow || v.Gates != Joins ||
		v.Text != "a member device is missing; it took over 10 s, so this may be stale" {
		t.Fatalf("silent for a while, got %s, gates %v: %s", v.State, v.Gates.Names(), v.Text)
	}
	b.reborn() // the agent does not remember for how long the check was silent
	b.each(99*time.Second, ms)
	if b.result.State != Slow {
		t.Fatalf("after a restart got %s", b.result.State)
	}
	b.changes = nil
	b.each(10*time.Minute, ms)
	if v := b.result; v.State != OK || len(v.Findings) > 0 {
		t.Errorf("silent for ten intervals, got %s: %+v", v.State, v.Findings)
	}
	if len(b.changes) != 1 || b.changes[0].Text != "no result for 100 s: it took over 10 s" {
		t.Errorf("changes: %+v", b.changes)
	}
	b.externalChecks[0].Runs, b.externalChecks[0].Absent = b.externalChecks[0].Runs+1, ""
	b.each(10*time.Second, ms)
	if b.result.State != OK {
		t.Errorf("reported once after that, it counts: %s", b.result.Text)
	}
	b.externalCheckReports("raid-a", Slow, "a member device is missing")
	if b.result.State != Slow {
		t.Errorf("reported twice, it does not count: %s", b.result.Text)
	}
}

func TestAFlappingExternalCheckMustBeOKForLonger(t *testing.T) {
	t.Parallel()
	b := plugged(t)
	var took []time.Duration
	for range 4 {
		b.externalCheckReports("load", Warm, "load 9")
		began := b.now
		for len(b.result.Findings) > 0 && b.now-began < time.Hour {
			b.externalCheckReports("load", OK, "load 1")
		}
		took = append(took, b.now-began)
	}
	for i, d := range took[1:] {
		if d < took[i]*3/2 {
			t.Errorf("OK again after %v", took)
		}
	}
}

func TestTwoExternalChecksWithOneCodeAreRefused(t *testing.T) {
	t.Parallel()
	limits := DefaultThresholds()
	limits.ExternalChecks = []ExternalCheck{{Name: "a-b"}, {Name: "a_b"}}
	if _, err := New(limits); err == nil || !strings.Contains(err.Error(), "CHECK_A_B") {
		t.Error(err)
	}
}
