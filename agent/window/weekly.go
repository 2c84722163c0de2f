// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package window

import (
	"fmt"
	"strings"
	"time"
	_ "time/tzdata" // for hosts without /usr/share/zoneinfo; it adds 450 KB to the binary
)

// Window is a span of hours on some days of the week, such as "Mon..Fri 02:00-04:00 Europe/Berlin".
type Window struct {
	days     [7]bool // weekdays on which the window begins, by time.Weekday
	from, to int     // minutes since midnight; if to < from, the window ends on the next day
	zone     *time.Location
}

const dayMinutes = 24 * 60

// ParseWindow parses DAYS FROM-TO [ZONE]. DAYS are Mon to Sun, joined by commas and "..", or "daily". FROM and TO are
// hours and minutes. If TO is before FROM, it is on the next day. ZONE is a name from the IANA time zone database, or
// UTC; the default is the time zone of the machine.
func ParseWindow(text string) (Window, error) {
	fields := strings.Fields(text)
	if len(fields) != 2 && len(fields) != 3 {
		return Window{},
			fmt.Errorf("%q is not a window; write days, hours and perhaps a time zone, such as \"Mon..Fri 02:00-04:00 "+
				"Europe/Berlin\"", text)
	}
	w := Window{zone: time.Local}
	var err error
	if w.days, err = parseDays(fields[0]); err != nil {
		return Window{}, err
	}
	from, to, is := strings.Cut(fields[1], "-")
	if !is {
		return Window{}, fmt.Errorf("%q is not a range of hours; write from-to, such as 02:00-04:00", fields[1])
	}
	if w.from, err = parseClock(from); err == nil {
		w.to, err = parseClock(to)
	}
	switch {
	case err != nil:
		return Window{}, err
	case w.from == dayMinutes:
		return Window{}, fmt.Errorf("a window cannot begin at 24:00; write 00:00 of the next day")
	case w.from == w.to:
		return Window{}, fmt.Errorf("%q is an empty window; for a whole day write 00:00-24:00", fields[1])
	}
	if len(fields) == 3 {
		w.zone, err = parseZone(fields[2])
	}
	return w, err
}

func parseDays(text string) (days [7]bool, err error) {
	if text == "daily" {
		return [7]bool{true, true, true, true, true, true, true}, nil
	}
	for part := range strings.SplitSeq(text, ",") {
		first, last, is := strings.Cut(part, "..")
		if !is {
			last = first
		}
		from, ok := weekday(first)
		to, ok2 := weekday(last)
		if !ok || !ok2 {
			return days, fmt.Errorf("%q is not a list of days; write days, such as Mon..Fri or Sat,Sun, or write "+
				"daily", text)
		}
		for day := from; ; day = (day + 1) % 7 {
			days[day] = true
			if day == to {
				break
			}
		}
	}
	return days, nil
}

func weekday(text string) (int, bool) {
	for day := time.Sunday; day <= time.Saturday; day++ {
		if text == day.String()[:3] {
			return int(day), true
		}
	}
	return 0, false
}

// parseClock parses HH:MM and returns the minutes since midnight.
func parseClock(text string) (int, error) {
	if text == "24:00" {
		return dayMinutes, nil
	}
	at, err := time.Parse("15:04", text)
	if err != nil || len(text) != len("15:04") {
		return 0, fmt.Errorf("%q is not a time of day; write hours and minutes, such as 02:00", text)
	}
	return at.Hour()*60 + at.Minute(), nil
}

func parseZone(name string) (*time.Location, error) {
	zone, err := time.LoadLocation(name)
	if err != nil || name == "Local" {
		return nil, fmt.Errorf("%q is not a time zone; use an IANA name, such as Europe/Berlin or UTC, or omit the "+
			"zone to use the machine's own", name)
	}
	return zone, nil
}

// Contains reports whether the window is open at this time. It uses the wall clock of its zone: an hour skipped by
// daylight saving time is in no window, and a window contains both occurrences of an hour that occurs twice.
func (w Window) Contains(at time.Time) bool {
	at = at.In(w.zone)
	minute := at.Hour()*60 + at.Minute()
	today, yesterday := w.days[at.Weekday()], w.days[(at.Weekday()+6)%7]
	if w.from < w.to {
		return today && w.from <= minute && minute < w.to
	}
	return today && minute >= w.from || yesterday && minute < w.to
}
