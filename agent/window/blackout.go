// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package window

import (
	"fmt"
	"strings"
	"time"
)

// Blackout is a day, or a range of days, in which no window counts.
type Blackout struct {
	from, to string // dates in a format that sorts as text: 2026-12-24, or 12-24 for every year
	layout   string
	zone     *time.Location
	text     string
}

const (
	oneYear   = "2006-01-02"
	everyYear = "01-02"
)

// ParseBlackout parses FROM[..TO] [ZONE]. FROM and TO are dates, such as 2026-12-24 or, for every year, 12-24; the
// blackout includes both days. An annual TO before FROM is in the next year. ZONE is a time zone as in ParseWindow.
func ParseBlackout(text string) (Blackout, error) {
	fields := strings.Fields(text)
	if len(fields) != 1 && len(fields) != 2 {
		return Blackout{}, fmt.Errorf("%q is not a blackout; write a date or a range, such as 2026-12-24 or "+
			"12-20..01-06, and optionally a time zone", text)
	}
	b := Blackout{zone: time.Local, text: strings.Join(fields, " ")}
	first, last, is := strings.Cut(fields[0], "..")
	if !is {
		last = first
	}
	b.from, b.to, b.layout = first, last, oneYear
	if len(first) == len(everyYear) {
		b.layout = everyYear
	}
	for _, date := range []string{first, last} {
		if !isDate(date, b.layout) {
			return Blackout{},
				fmt.Errorf("%q is not a date or range; write one date, or two in the same form, such as "+
					"2026-12-20..2027-01-06 or, for every year, 12-20..01-06", fields[0])
		}
	}
	if b.layout == oneYear && last < first {
		return Blackout{}, fmt.Errorf("%q ends before it begins; swap the dates", fields[0])
	}
	var err error
	if len(fields) == 2 {
		b.zone, err = parseZone(fields[1])
	}
	return b, err
}

func isDate(text, layout string) bool {
	if layout == everyYear {
		text, layout = "2024-"+text, oneYear // a leap year has all possible days
	}
	_, err := time.Parse(layout, text)
	return err == nil && len(text) == len(layout)
}

// Contains reports whether a time is in the blackout.
func (b Blackout) Contains(at time.Time) bool {
	day := at.In(b.zone).Format(b.layout)
	if b.from <= b.to {
		return b.from <= day && day <= b.to
	}
	return day >= b.from || day <= b.to
}

// String returns the blackout as it was written.
func (b Blackout) String() string { return b.text }
