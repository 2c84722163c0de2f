// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package health

import (
	"slices"
	"testing"
	"time"
)

func wellTime() TimeSource {
	return TimeSource{Known: true, Synchronised: true, SinceUpdate: time.Minute}
}

func timeEdges() []edge {
	set := func(s TimeSource, lasting time.Duration) func(*bench) {
		return func(b *bench) { b.hardware.Time = s; b.each(lasting, quiet) }
	}
	then := func(first, second func(*bench)) func(*bench) {
		return func(b *bench) { first(b); second(b) }
	}
	lately, silent := wellTime(), wellTime()
	lately.SinceUpdate, silent.SinceUpdate = sourceSilent, sourceSilent+1
	return []edge{
		{
			"chrony has no reachable source", then(set(lately, time.Minute), set(silent, sourceFor-time.Second)),
			set(silent, time.Second),
		},
		{
			"chrony has a reachable source", then(set(silent, time.Minute), set(lately, sourceWellFor-time.Second)),
			set(lately, time.Second),
		},
	}
}

func TestAMissingTimeSourceIsFoundWithTheReason(t *testing.T) {
	t.Parallel()
	for want, s := range map[string]TimeSource{
		"chrony is not synchronised: no source selected": {Known: true, SinceUpdate: 500000 * time.Hour},
		"chrony uses only the machine's own clock":       {Known: true, Synchronised: true, Own: true},
		"last update from a time source 3 h ago, limit 2 h": {
			Known: true, Synchronised: true, SinceUpdate: 3 * time.Hour,
		},
		"last update from a time source 2.25 h ago, limit 2 h": {
			Known: true, Synchronised: true, SinceUpdate: 2*time.Hour + 15*time.Minute + 5*time.Second,
		},
	} {
		b := newBench(t, DefaultThresholds())
		b.pass(time.Minute, ms)
		b.hardware.Time = s
		b.pass(2*sourceFor, ms)
		if got := b.found(ClockNoSource); got != want {
			t.Errorf("%+v: found %q, want %q", s, got, want)
		}
	}
}

func TestAnUnsynchronisedClockHidesBehindAMissingTimeSource(t *testing.T) {
	t.Parallel()
	b := newBench(t, DefaultThresholds())
	b.pass(time.Minute, ms)
	b.hardware.Time.Synchronised = false
	b.machine.ClockError = known(16)
	b.pass(time.Hour, ms)
	if b.found(ClockNoSource) == "" || b.found(ClockUnsynchronised) != "" {
		t.Errorf("the findings are %+v", b.result.Findings)
	}
	b.hardware.Time = TimeSource{Absent: "no chronyd"}
	b.pass(time.Hour, ms)
	if !slices.Contains(b.result.NotAvailable, Absence{"time-source", Machine, "no chronyd"}) {
		t.Errorf("not available: %+v", b.result.NotAvailable)
	}
}
