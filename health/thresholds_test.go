// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package health

import (
	"strings"
	"testing"
	"time"
)

func TestAllInvalidThresholdsAreNamed(t *testing.T) {
	t.Parallel()
	_, err := New(Thresholds{})
	if err == nil {
		t.Fatal("there is no error")
	}
	for _, word := range []string{
		"invalid thresholds", "window is 0; make it 20", "fsyncClear", "fsyncWarm", "fsyncSlow",
		"stall", "fail is", "starved is 0; make it 1 to 100", "directInterval",
	} {
		if !strings.Contains(err.Error(), word) {
			t.Errorf("the error does not name %q: %v", word, err)
		}
	}
	limits := DefaultThresholds()
	limits.QualifySamples = limits.Window - 1
	if _, err := New(limits); err == nil || !strings.Contains(err.Error(), "qualifySamples is 299, but window is 300") {
		t.Errorf("a run shorter than the window: %v", err)
	}
}

func TestASmallWindowScalesTheTimesAndTheTrip(t *testing.T) {
	t.Parallel()
	limits := DefaultThresholds()
	limits.QualifySamples, limits.Window = 150, 30
	b := newBench(t, limits)
	b.each(time.Second, ms)
	b.burst(150, ms)
	b.want(OK)
	b.member = true
	b.each(3*time.Second, 20*ms)
	b.want(OK)
	b.each(time.Second, 20*ms) // the fourth of 30
	b.want(Warm)
	b.each(3*time.Second, 200*ms)
	b.want(Slow)
	if took := b.until(Warm, time.Hour); took != 90*time.Second {
		t.Errorf("SLOW lasted %s, want a tenth of 15 min", took)
	}
}

func TestALargeWindowDoesNotLengthenTheTimes(t *testing.T) {
	t.Parallel()
	limits := DefaultThresholds()
	limits.QualifySamples, limits.Window = 10_000, 3600
	if got, want := limits.pace(), DefaultThresholds().pace(); got != want {
		t.Errorf("the times are %+v, want %+v", got, want)
	}
}

func TestLimitsAreFormatted(t *testing.T) {
	t.Parallel()
	for want, limit := range map[string]Limit{
		"heat: bad over 0 °C, good again 5 °C below that": {Of: "heat", Unit: "°C", Leave: -5},
		"median: bad below 15 µs": {
			Of: "median", Unit: "s", Enter: 1.5e-05, Leave: 1.5e-05, Below: true,
		},
		"error: bad over 1 s, good again at 500 ms or less": {Of: "error", Unit: "s", Enter: 1, Leave: 0.5},
	} {
		if got := limit.String(); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}
