// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package window

import (
	"strings"
	"testing"
	"time"
)

func at(t *testing.T, text string) time.Time {
	t.Helper()
	moment, err := time.Parse("2006-01-02T15:04Z07:00", text)
	if err != nil {
		t.Fatal(err)
	}
	return moment
}

func parsed(t *testing.T, text string) Window {
	t.Helper()
	w, err := ParseWindow(text)
	if err != nil {
		t.Fatal(err)
	}
	return w
}

func TestWindowFollowsTheWallClock(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		window, at string
		open       bool
	}{ // 2026-11-23 is a Monday
		{"Mon..Fri 02:00-04:00 UTC", "2026-11-23T01:59Z", false},
		{"Mon..Fri 02:00-04:00 UTC", "2026-11-23T02:00Z", true},
		{"Mon..Fri 02:00-04:00 UTC", "2026-11-23T03:59Z", true},
		{"Mon..Fri 02:00-04:00 UTC", "2026-11-23T04:00Z", false},
		{"Mon..Fri 02:00-04:00 UTC", "2026-11-22T03:00Z", false},
		{"Fri..Mon 02:00-04:00 UTC", "2026-11-22T03:00Z", true},
		{"Sat,Sun 02:00-04:00 UTC", "2026-11-22T03:00Z", true},
		{"Tue,Thu..Fri 02:00-04:00 UTC", "2026-11-25T03:00Z", false},
		{"daily 02:00-04:00 UTC", "2026-11-25T03:00Z", true},
		{"daily 00:00-24:00 UTC", "2026-11-25T23:59Z", true},
		// A window across midnight belongs to the day on which it begins.
		{"Sun 22:00-02:00 UTC", "2026-11-22T23:00Z", true},
		{"Sun 22:00-02:00 UTC", "2026-11-23T01:59Z", true},
		{"Sun 22:00-02:00 UTC", "2026-11-23T02:00Z", false},
		{"Sun 22:00-02:00 UTC", "2026-11-22T01:00Z", false},
		{"Sun 22:00-02:00 UTC", "2026-11-23T22:30Z", false},
		// The zone decides which day it is.
		{"Mon 00:00-01:00 Asia/Tokyo", "2026-11-22T15:30Z", true},
		{"Mon 00:00-01:00 Asia/Tokyo", "2026-11-23T00:30Z", false},
		// In Berlin, the hour from 02:00 to 03:00 does not exist on 2026-03-29 and occurs twice on 2026-10-25.
		{"Sun 02:00-03:00 Europe/Berlin", "2026-03-29T00:59Z", false}, // 01:59
		{"Sun 02:00-03:00 Europe/Berlin", "2026-03-29T01:00Z", false}, // 03:00
		{"Sun 02:00-04:00 Europe/Berlin", "2026-03-29T01:00Z", true},  // 03:00
		{"Sun 02:00-04:00 Europe/Berlin", "2026-03-29T02:00Z", false}, // 04:00
		{"Sun 02:00-03:00 Europe/Berlin", "2026-10-25T00:30Z", true},  // 02:30, summer time
		{"Sun 02:00-03:00 Europe/Berlin", "2026-10-25T01:30Z", true},  // 02:30 again
		{"Sun 02:00-03:00 Europe/Berlin", "2026-10-25T02:00Z", false}, // 03:00
		{"Sat 22:00-02:30 Europe/Berlin", "2026-03-29T01:10Z", false}, // 03:10
		{"Sat 22:00-02:30 Europe/Berlin", "2026-10-25T01:20Z", true},  // 02:20 for the second time
	} {
		w := parsed(t, c.window)
		if open := w.Contains(at(t, c.at)); open != c.open {
			t.Errorf("%s at %s (%s): open %v", c.window, c.at, at(t, c.at).In(w.zone).Format("Mon 15:04 MST"), open)
		}
	}
}

func TestNextWindowIsFoundAcrossAClockChange(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ window, after, want string }{
		{"Mon..Fri 02:00-04:00 UTC", "2026-11-21T12:00Z", "2026-11-23T02:00Z"},
		{"Sun 22:00-02:00 UTC", "2026-11-23T02:00Z", "2026-11-29T22:00Z"},
		{"Sun 02:00-03:00 Europe/Berlin", "2026-03-28T12:00Z", "2026-04-05T00:00Z"}, // skipped on 2026-03-29
	} {
		if got := (Times{windows: []Window{parsed(t, c.window)}}).opens(at(t, c.after)); !got.Equal(at(t, c.want)) {
			t.Errorf("%s after %s: %s", c.window, c.after, got)
		}
	}
}

func TestAutomaticWorkIsAllowedInWindowsAndOutsideOfBlackouts(t *testing.T) {
	t.Parallel()
	times, err := Parse([]string{"Mon..Fri 02:00-04:00 UTC", "Sat 02:00-04:00 UTC"}, []string{"2026-12-24 UTC"})
	if err != nil {
		t.Fatal(err)
	}
	for when, want := range map[string][2]string{ // 2026-11-23 is a Monday
		"2026-11-23T02:30Z": {},
		"2026-11-28T02:30Z": {},
		"2026-11-23T04:00Z": {
			"no maintenance window is open",
			"the next maintenance window opens Tue 2026-11-24 02:00 UTC",
		},
		"2026-12-23T04:00Z": {
			"no maintenance window is open",
			"the next maintenance window opens Fri 2026-12-25 02:00 UTC",
		},
		"2026-12-24T02:30Z": {"a blackout is in effect: 2026-12-24 UTC", "a blackout is in effect: 2026-12-24 UTC"},
		"2026-12-24T05:30Z": {"a blackout is in effect: 2026-12-24 UTC", "a blackout is in effect: 2026-12-24 UTC"},
	} {
		if got := [2]string{times.Shut(at(t, when)), times.ShutUntil(at(t, when))}; got != want {
			t.Errorf("at %s: %q, want %q", when, got, want)
		}
	}
	if why := (Times{}).ShutUntil(at(t, "2026-11-23T02:30Z")); why != "no maintenance window is open" {
		t.Errorf("without a window: %q", why)
	}
}

func TestInvalidWindowIsExplained(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"":                                "write days, hours",
		"02:00-04:00":                     "write days, hours",
		"Mon 02:00-04:00 Europe/Berlin x": "write days, hours",
		"Mon 02:00":                       "from-to",
		"Mon 2:00-4:00":                   "such as 02:00",
		"Mon 02:00-25:00":                 "such as 02:00",
		"Mon 02:00-04:60":                 "such as 02:00",
		"Mon 24:00-04:00":                 "cannot begin at 24:00",
		"Mon 02:00-02:00":                 "00:00-24:00",
		"Monday 02:00-04:00":              "Mon..Fri",
		"Mo 02:00-04:00":                  "Mon..Fri",
		"mon 02:00-04:00":                 "Mon..Fri",
		"Mon, 02:00-04:00":                "Mon..Fri",
		"Mon..Fri..Sun 02:00-04:00":       "Mon..Fri",
		"Mon 02:00-04:00 Berlin":          "Europe/Berlin",
		"Mon 02:00-04:00 Local":           "Europe/Berlin",
		"Mon 02:00-04:00 ../../etc/zone":  "Europe/Berlin",
	} {
		if _, err := ParseWindow(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want an error with %q", text, err, want)
		}
	}
}

func TestBlackoutCoversItsDays(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		blackout, at string
		in           bool
	}{
		{"2026-12-24 UTC", "2026-12-23T23:59Z", false},
		{"2026-12-24 UTC", "2026-12-24T00:00Z", true},
		{"2026-12-24 UTC", "2026-12-24T23:59Z", true},
		{"2026-12-24 UTC", "2026-12-25T00:00Z", false},
		{"2026-12-24 UTC", "2027-12-24T12:00Z", false},
		{"2026-12-20..2027-01-06 UTC", "2027-01-06T23:59Z", true},
		{"2026-12-20..2027-01-06 UTC", "2027-01-07T00:00Z", false},
		{"12-20..01-06 UTC", "2031-12-31T12:00Z", true},
		{"12-20..01-06 UTC", "2032-01-01T12:00Z", true},
		{"12-20..01-06 UTC", "2032-01-07T00:00Z", false},
		{"11-27 UTC", "2030-11-27T12:00Z", true},
		{"02-29 UTC", "2028-02-29T12:00Z", true},
		{"2026-12-24 Asia/Tokyo", "2026-12-23T15:00Z", true},
	} {
		b, err := ParseBlackout(c.blackout)
		if err != nil {
			t.Fatal(err)
		}
		if in := b.Contains(at(t, c.at)); in != c.in {
			t.Errorf("%s at %s: %v", c.blackout, c.at, in)
		}
	}
}

func TestInvalidBlackoutIsExplained(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"":                       "write a date",
		"a b c":                  "write a date",
		"24.12.2026":             "or two in the same form",
		"2026-13-01":             "or two in the same form",
		"2026-02-29":             "or two in the same form",
		"2026-12-24..12-26":      "or two in the same form",
		"12-24..2026-12-26":      "or two in the same form",
		"2026-12-24..":           "or two in the same form",
		"2026-12-26..2026-12-24": "ends before it begins",
		"02-30":                  "or two in the same form",
		"12-24 Berlin":           "Europe/Berlin",
	} {
		if _, err := ParseBlackout(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want an error with %q", text, err, want)
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add("Mon..Fri 02:00-04:00 Europe/Berlin")
	f.Add("12-20..01-06")
	f.Fuzz(func(_ *testing.T, text string) {
		if w, err := ParseWindow(text); err == nil {
			w.Contains(time.Unix(1e9, 0))
		}
		if b, err := ParseBlackout(text); err == nil {
			b.Contains(time.Unix(1e9, 0))
		}
	})
}
