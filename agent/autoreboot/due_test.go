// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package autoreboot

import (
	"strings"
	"testing"
	"time"
)

func TestARebootIsRequestedOnlyIfEverythingAllowsIt(t *testing.T) {
	t.Parallel()
	tuesday := time.Date(2026, 11, 24, 2, 0, 0, 0, time.UTC)
	own := func(s *candidate) { s.Asked, s.Own, s.Waiting = true, true, true }
	for what, c := range map[string]struct {
		change func(*candidate)
		want   move
		why    string
	}{
		"everything allows it": {func(*candidate) {}, moveAsk, ""},
		"not required":         {func(s *candidate) { s.Required = "" }, moveNone, ""},
		"a veto": {
			func(s *candidate) { s.Veto = "backup: runs" }, moveWait, "there is a veto: backup: runs",
		},
		"just booted": {func(s *candidate) { s.Up = 23 * time.Hour }, moveWait, "booted 23h ago"},
		"a day ago":   {func(s *candidate) { s.Up = 24 * time.Hour }, moveAsk, ""},
		"not the day": {func(s *candidate) { s.Blackout = "12-24" }, moveWait, "blackout: 12-24"},
		"not the hour": {
			func(s *candidate) { s.Open, s.Opens = false, tuesday }, moveWait, "Tue 2026-11-24 02:00 UTC",
		},
		"no window":               {func(s *candidate) { s.Open = false }, moveWait, "no window is open"},
		"it is requested already": {own, movePending, ""},
		"its operation has begun": {
			func(s *candidate) { own(s); s.Open, s.Waiting = false, false }, movePending,
			"no window",
		},
		"another host has a request": {
			func(s *candidate) { own(s); s.Open, s.Own = false, false }, movePending, "no window",
		},
		"too late": {
			func(s *candidate) { own(s); s.Open = false }, moveCancel, "no window is open",
		},
		"vetoed since": {func(s *candidate) { own(s); s.Veto = "x" }, moveCancel, "veto: x"},
		"done by hand": {func(s *candidate) { own(s); s.Required = "" }, moveCancel, ""},
	} {
		s := candidate{Required: "linux-image", Up: 30 * 24 * time.Hour, Open: true}
		c.change(&s)
		if move, why := s.move(); move != c.want || !strings.Contains(why, c.why) || (why == "") != (c.why == "") {
			t.Errorf("%s: %v, %q", what, move, why)
		}
	}
}
