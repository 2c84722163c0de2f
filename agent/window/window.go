// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

// Package window implements the maintenance windows and blackouts in which operators allow and forbid automatic reboots
// and defragmentations, and the windows of scheduled snapshots. A defragmentation near the quota ignores them.
//
// It promises:
//   - Without a window, [Times.Shut] allows nothing. A blackout takes precedence over every window.
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

// Shut returns why automatic work is not allowed at a time: a blackout, or no open window. It returns an empty
// string if the work is allowed.
func (t Times) Shut(at time.Time) string {
	if why := t.inBlackout(at); why != "" || t.open(at) {
		return why
	}
	return "no maintenance window is open"
}

// ShutUntil returns the same as Shut, but if the reason is that no window is open, it returns from when the work is
// allowed: the first time within nine days at which a window is open and no blackout is in effect. It is slow, because
// it tries every minute until then.
func (t Times) ShutUntil(at time.Time) string {
	if t.inBlackout(at) == "" && !t.open(at) {
		if opens := t.opens(at); !opens.IsZero() {
			return "the next maintenance window opens " + opens.Format("Mon 2006-01-02 15:04 MST")
		}
	}
	return t.Shut(at)
}

func (t Times) inBlackout(at time.Time) string {
	for _, b := range t.blackouts {
		if b.Contains(at) {
			return "a blackout is in effect: " + b.String()
		}
	}
	return ""
}

func (t Times) open(at time.Time) bool {
	return slices.ContainsFunc(t.windows, func(w Window) bool { return w.Contains(at) })
}

// opens returns when automatic work is allowed after a time at which all windows are closed, or zero if it is not
// allowed within nine days.
func (t Times) opens(after time.Time) time.Time {
	at := after.Truncate(time.Minute)
	for range 9 * dayMinutes {
		at = at.Add(time.Minute)
		for _, w := range t.windows {
			if w.Contains(at) && t.inBlackout(at) == "" {
				return at.In(w.zone)
			}
		}
	}
	return time.Time{}
}
