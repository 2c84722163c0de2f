// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

// Package window implements the maintenance windows and blackouts in which operators allow and forbid automatic work:
// reboots, defragmentations and snapshots.
//
// It promises:
//   - Without a window, automatic work is never allowed. A blackout takes precedence over every window.
//   - Times are evaluated by the wall clock of the time zone that the operator wrote, across daylight saving time.
package window

import (
	"slices"
	"time"
)

// Times are the windows and blackouts of one configuration. The zero value has no window, so it is never open.
type Times struct {
	windows   []Window
	blackouts []Blackout
}

// Parse parses windows and blackouts. See ParseWindow and ParseBlackout for their formats.
func Parse(windows, blackouts []string) (t Times, err error) {
	for _, text := range windows {
		w, err := ParseWindow(text)
		if err != nil {
			return Times{}, err
		}
		t.windows = append(t.windows, w)
	}
	for _, text := range blackouts {
		b, err := ParseBlackout(text)
		if err != nil {
			return Times{}, err
		}
		t.blackouts = append(t.blackouts, b)
	}
	return t, nil
}

// Blackout returns the blackout that contains a time, as the operator wrote it; empty if there is none.
func (t Times) Blackout(at time.Time) string {
	for _, b := range t.blackouts {
		if b.Contains(at) {
			return b.String()
		}
	}
	return ""
}

// Open reports whether one of the windows contains a time. It ignores blackouts.
func (t Times) Open(at time.Time) bool {
	return slices.ContainsFunc(t.windows, func(w Window) bool { return w.Contains(at) })
}

// Opens returns when the first window opens after a time at which all are closed, or zero if none opens within nine
// days.
func (t Times) Opens(after time.Time) time.Time {
	at := after.Truncate(time.Minute)
	for range 9 * dayMinutes {
		at = at.Add(time.Minute)
		for _, w := range t.windows {
			if w.Contains(at) {
				return at.In(w.zone)
			}
		}
	}
	return time.Time{}
}
