// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"strings"
	"testing"
	"time"
)

func TestARebootIsRequestedOnlyIfEverythingAllowsIt(t *testing.T) {
	t.Parallel()
	tuesday := time.Date(2026, 11, 24, 2, 0, 0, 0, time.UTC)
	own := func(s *RebootableHost) { s.Asked, s.Own, s.Waiting = true, true, true }
	for what, c := range map[string]struct {
		change func(*RebootableHost)
		want   RebootMove
		why    string
	}{
		"everything allows it": {func(*RebootableHost) {}, RebootAsk, ""},
		"not required":         {func(s *RebootableHost) { s.Required = "" }, RebootNone, ""},
		"a veto": {
			func(s *RebootableHost) { s.Veto = "backup: runs" }, RebootWait, "there is a veto: backup: runs",
		},
		"just booted": {func(s *RebootableHost) { s.Up = 23 * time.Hour }, RebootWait, "booted 23h ago"},
		"a day ago":   {func(s *RebootableHost) { s.Up = 24 * time.Hour }, RebootAsk, ""},
		"not the day": {func(s *RebootableHost) { s.Blackout = "12-24" }, RebootWait, "blackout: 12-24"},
		"not the hour": {
			func(s *RebootableHost) { s.Open, s.Opens = false, tuesday }, RebootWait, "Tue 2026-11-24 02:00 UTC",
		},
		"no window":               {func(s *RebootableHost) { s.Open = false }, RebootWait, "no window is open"},
		"it is requested already": {own, RebootPending, ""},
		"its operation has begun": {
			func(s *RebootableHost) { own(s); s.Open, s.Waiting = false, false }, RebootPending,
			"no window",
		},
		"another host has a request": {
			func(s *RebootableHost) { own(s); s.Open, s.Own = false, false }, RebootPending, "no window",
		},
		"too late": {
			func(s *RebootableHost) { own(s); s.Open = false }, RebootWithdraw, "no window is open",
		},
		"vetoed since": {func(s *RebootableHost) { own(s); s.Veto = "x" }, RebootWithdraw, "veto: x"},
		"done by hand": {func(s *RebootableHost) { own(s); s.Required = "" }, RebootWithdraw, ""},
	} {
		s := RebootableHost{Required: "linux-image", Up: 30 * 24 * time.Hour, Open: true}
		c.change(&s)
		if move, why := s.Move(); move != c.want || !strings.Contains(why, c.why) || (why == "") != (c.why == "") {
			t.Errorf("%s: %v, %q", what, move, why)
		}
	}
}
