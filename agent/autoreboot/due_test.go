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
		"just booted": {func(s *candidate) { s.Up = 23 * time.Hour }, actionWait, "booted 23h ago"},
		"a day ago":   {func(s *candidate) { s.Up = 24 * time.Hour }, actionRequest, ""},
		"outside of the window": {
			func(s *candidate) { s.Shut = "no window is open" }, actionWait, "no window is open",
		},
		"it is requested already": {own, actionPending, ""},
		"its operation has begun": {
			func(s *candidate) { own(s); s.Shut, s.Waiting = "no window", false }, actionPending,
			"no window",
		},
		"an operator has requested maintenance": {
			func(s *candidate) { own(s); s.Shut, s.Own = "no window", false }, actionPending, "no window",
		},
		"window has ended": {
			func(s *candidate) { own(s); s.Shut = "no window is open" }, actionCancel, "no window is open",
		},
		"vetoed afterwards":  {func(s *candidate) { own(s); s.Veto = "x" }, actionCancel, "veto: x"},
		"no longer required": {func(s *candidate) { own(s); s.Required = "" }, actionCancel, ""},
	} {
		s := candidate{Required: "linux-image", Up: 30 * 24 * time.Hour}
		c.change(&s)
		if next, why := s.decide(); next != c.want || !strings.Contains(why, c.why) || (why == "") != (c.why == "") {
			t.Errorf("%s: %v, %q", what, next, why)
		}
	}
}
