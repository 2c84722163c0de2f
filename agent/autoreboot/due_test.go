// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package autoreboot

import (
	"strings"
	"testing"
	"time"

	"github.com/quorumd/quorumd/agent/window"
)

func TestARebootIsRequestedOnlyIfEverythingAllowsIt(t *testing.T) {
	t.Parallel()
	tuesday := time.Date(2026, 11, 24, 2, 0, 0, 0, time.UTC)
	own := func(s *candidate) { s.Asked, s.Own, s.Waiting = true, true, true }
	for what, c := range map[string]struct {
		change func(*candidate)
		want   action
		why    string
	}{
		"everything allows it": {func(*candidate) {}, actionRequest, ""},
		"not required":         {func(s *candidate) { s.Required = "" }, actionNone, ""},
		"a veto": {
			func(s *candidate) { s.Veto = "backup: runs" }, actionWait, "there is a veto: backup: runs",
		},
		"just booted":   {func(s *candidate) { s.Up = 23 * time.Hour }, actionWait, "booted 23h ago"},
		"a day ago":     {func(s *candidate) { s.Up = 24 * time.Hour }, actionRequest, ""},
		"in a blackout": {func(s *candidate) { s.Blackout = "12-24" }, actionWait, "blackout: 12-24"},
		"outside of the window": {
			func(s *candidate) { s.Open, s.Opens = false, tuesday }, actionWait, "Tue 2026-11-24 02:00 UTC",
		},
		"no window":               {func(s *candidate) { s.Open = false }, actionWait, "no window is open"},
		"it is requested already": {own, actionPending, ""},
		"its operation has begun": {
			func(s *candidate) { own(s); s.Open, s.Waiting = false, false }, actionPending,
			"no window",
		},
		"an operator has requested maintenance": {
			func(s *candidate) { own(s); s.Open, s.Own = false, false }, actionPending, "no window",
		},
		"window has ended": {
			func(s *candidate) { own(s); s.Open = false }, actionCancel, "no window is open",
		},
		"vetoed afterwards":  {func(s *candidate) { own(s); s.Veto = "x" }, actionCancel, "veto: x"},
		"no longer required": {func(s *candidate) { own(s); s.Required = "" }, actionCancel, ""},
	} {
		s := candidate{Required: "linux-image", Up: 30 * 24 * time.Hour, Open: true}
		c.change(&s)
		if next, why := s.decide(); next != c.want || !strings.Contains(why, c.why) || (why == "") != (c.why == "") {
			t.Errorf("%s: %v, %q", what, next, why)
		}
	}
}

func TestCandidateHasTheStateOfWindowsAndBlackouts(t *testing.T) {
	t.Parallel()
	times, err := window.Parse([]string{"Mon..Fri 02:00-04:00 UTC", "Sat 02:00-04:00 UTC"}, []string{"2026-12-24 UTC"})
	if err != nil {
		t.Fatal(err)
	}
	at := func(month time.Month, day, hour, minute int) time.Time {
		return time.Date(2026, month, day, hour, minute, 0, 0, time.UTC)
	}
	for when, want := range map[time.Time]candidate{ // 2026-11-23 is a Monday
		at(11, 23, 2, 30): {Open: true},
		at(11, 28, 2, 30): {Open: true},
		at(11, 23, 4, 0):  {Opens: at(11, 24, 2, 0)},
		at(12, 24, 2, 30): {Open: true, Blackout: "2026-12-24 UTC"},
	} {
		got := candidateAt(times, when)
		if got.Opens = got.Opens.UTC(); got != want {
			t.Errorf("at %s: %+v, want %+v", when, got, want)
		}
	}
	if got := candidateAt(window.Times{}, at(11, 23, 2, 30)); got != (candidate{}) {
		t.Errorf("without a window: %+v", got)
	}
}
