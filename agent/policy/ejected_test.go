// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"testing"
	"time"

	"github.com/quorumd/quorumd/health"
)

// outView returns the view of a spare that was ejected once. The cluster lacks a voter.
func outView() View {
	v := spareView()
	v.Limits.CleanFor = 10 * time.Minute
	v.Ejections = Ejections{Times: 1, Ago: 14 * time.Minute, HealthyFor: 4 * time.Minute}
	return v
}

func TestAnEjectedHostJoinsOnceHealthyForLongEnough(t *testing.T) {
	t.Parallel()
	play(t, outView, []scene{
		{"it waits", nil, StepNone, Ejected},
		{"it is unhealthy now", func(v *View) { v.Ejections.HealthyFor = 0 }, StepNone, Ejected},
		{"it is unhealthy, and that is the first reason", func(v *View) {
			v.Ejections.HealthyFor, v.Health.State = 0, health.Slow
		}, StepNone, HealthBad},
		{"it has been healthy for just long enough", func(v *View) {
			v.Ejections.HealthyFor = 10 * time.Minute
		}, StepTakeLock, ""},
		{"it has been healthy for almost long enough", func(v *View) {
			v.Ejections.HealthyFor = 10*time.Minute - 1
		}, StepNone, Ejected},
		{"it was never ejected", func(v *View) { v.Ejections = Ejections{} }, StepTakeLock, ""},
		{"it was ejected twice, and 14 minutes do not suffice", func(v *View) {
			v.Ejections = Ejections{Times: 2, Ago: 14 * time.Minute, HealthyFor: 14 * time.Minute}
		}, StepNone, Ejected},
		{"it was ejected twice, and 20 minutes suffice", func(v *View) {
			v.Ejections = Ejections{Times: 2, HealthyFor: 20 * time.Minute}
		}, StepTakeLock, ""},
		{"it was ejected 16 times, and less than a day does not suffice", func(v *View) {
			v.Ejections = Ejections{Times: 16, HealthyFor: 24*time.Hour - time.Second}
		}, StepNone, Ejected},
		{"it was ejected 16 times, and a day suffices", func(v *View) {
			v.Ejections = Ejections{Times: 16, HealthyFor: 24 * time.Hour}
		}, StepTakeLock, ""},
		{"its configuration disables the wait", func(v *View) { v.Limits.CleanFor = 0 }, StepTakeLock, ""},
		{"only the place of a standby is free", func(v *View) { v.Target.Voters = 1 }, StepNone, Ejected},
		{"the ejections cannot be read", func(v *View) {
			v.Ejections = Ejections{} // the agent observes no ejections if the record is unreadable
			v.Unreadable = []Unreadable{{RecordRepairs, "/quorumd/c/repairs", "bad JSON"}}
		}, StepTakeLock, ""},
	})
	play(t, deadView, []scene{
		{"it does not replace a dead voter", func(v *View) {
			v.Limits.CleanFor, v.Ejections = 10*time.Minute, Ejections{Times: 1}
		}, StepNone, Ejected},
	})
	play(t, joinView, []scene{
		{"a joining host continues, even if its agent has just started", func(v *View) {
			v.Limits.CleanFor, v.Ejections = 10*time.Minute, Ejections{Times: 3}
			v.Cluster.Members[2].SteadyFor, v.Cluster.Members[2].LiveFor = 0, 0
		}, StepNone, LearnerNotSteady},
	})
}

func TestTheReasonOfAnEjectedHostNamesTheCountAndTheRemainingTime(t *testing.T) {
	t.Parallel()
	v := outView()
	for times, want := range map[int]string{
		1: "n3 was ejected once 14m ago: it rejoins after being healthy for 10m; 6m remain",
		2: "n3 was ejected 2 times, most recently 14m ago: it rejoins after being healthy for 20m; 16m remain",
		9: "n3 was ejected 9 times, most recently 14m ago: it rejoins after being healthy for 1d; 23h56m remain",
	} {
		v.Ejections.Times = times
		if r := Decide(v).Reasons; len(r) == 0 || r[0].Text != want {
			t.Errorf("got %v, want %q", r, want)
		}
	}
}

func TestAnEjectedHostIsNotReady(t *testing.T) {
	t.Parallel()
	v := outView()
	d := Decide(v)
	if d.Waiting != Ejected || d.First {
		t.Errorf("it publishes that it waits for %q, and goes first: %t", d.Waiting, d.First)
	}
	v.Hosts[2].Waiting = d.Waiting
	v.Hosts = append(v.Hosts, ready("n9", RoleSpare))
	other := v
	other.Self.ID, other.Self.Name, other.Self.PeerURL, other.Ejections = "n9", "n9", peerPrefix+"n9", Ejections{}
	if got := candidates(other, RoleVoter, true); len(got) != 1 || got[0].ID != "n9" {
		t.Errorf("ready are %v", got)
	}
	v.Cluster.Members = append(v.Cluster.Members, voter(3, "n3"))
	if d := Decide(v); d.Waiting != "" {
		t.Errorf("a voter waits for %q", d.Waiting)
	}
}

func TestOnlyAGoodHealthStateKeepsAPeriodHealthy(t *testing.T) {
	t.Parallel()
	for state, want := range map[health.State]bool{
		health.OK: true, health.Warm: true, health.Unknown: false, health.Qualifying: false, health.Slow: false,
		health.Stalled: false, health.Failed: false,
	} {
		if got := (Health{State: state}).Healthy(); got != want {
			t.Errorf("%s: healthy %t, want %t", state, got, want)
		}
	}
}

func TestAHealthyPeriodIsRecordedAsItGrowsAndForgottenWhenItEnds(t *testing.T) {
	t.Parallel()
	const well = 5 * time.Minute
	for name, c := range map[string]struct {
		change func(v *View)
		want   bool
	}{
		"the disk records it":                      {func(*View) {}, false},
		"the disk records nothing":                 {func(v *View) { v.Ejections.RecordedFor = 0 }, true},
		"the disk records an earlier period":       {func(v *View) { v.Ejections.RecordedAgo = time.Minute }, true},
		"the disk records it for another ejection": {func(v *View) { v.Ejections.RecordedFor = time.Hour }, true},
		"it has just begun": {
			func(v *View) { v.Ejections.HealthyFor, v.Ejections.RecordedFor = 1, 0 }, false,
		},
		"it is unhealthy": {
			func(v *View) { v.Ejections.HealthyFor, v.Health.State = 0, health.Slow }, true,
		},
		"its health is unknown": {func(v *View) {
			v.Ejections.HealthyFor, v.Health.State = 0, health.Unknown
		}, false},
		"it was never ejected": {func(v *View) { v.Ejections = Ejections{} }, false},
		"it is unknown": {func(v *View) {
			v.Cluster.Fresh, v.Ejections.RecordedAgo = false, time.Hour
		}, false},
		"it is unhealthy, as recorded": {func(v *View) {
			v.Ejections.HealthyFor, v.Ejections.RecordedFor, v.Health.State = 0, 0, health.Slow
		}, false},
	} {
		v := outView()
		v.Cluster.Listed, v.Cluster.Fresh, v.Ejections.HealthyFor, v.Ejections.RecordedFor = true, true, well, well
		if c.change(&v); Decide(v).Notes.Self.Clean != c.want {
			t.Errorf("%s: recorded %t, want %t", name, !c.want, c.want)
		}
	}
}
