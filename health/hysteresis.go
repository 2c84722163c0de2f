// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package health

import (
	"cmp"
	"time"
)

// hysteresis times a finding: it begins after bad readings for badFor, and ends after good readings for wellFor.
type hysteresis struct {
	code    Code
	track   *track
	badFor  time.Duration
	wellFor time.Duration // base value: see patience

	begun    bool
	now      time.Duration
	lastOK   time.Duration // time of the last reading that was not bad or was unknown
	lastBad  time.Duration // time of the last reading that was not good or was unknown
	lastText string        // text of the last reading that was not good
}

// record adds a reading. A reading between the limits is neither bad nor well. Neither is an unknown reading, and it
// has no text.
func (h *hysteresis) record(now time.Duration, bad, well bool, text string) {
	h.now = now
	if !h.begun {
		h.begun, h.lastOK, h.lastBad = true, now, now
	}
	if !bad {
		h.lastOK = now
	}
	if !well {
		h.lastBad, h.lastText = now, cmp.Or(text, h.lastText)
	}
}

// currentText returns the text of the current reading, or, while the check is recovering, of the last one that was not
// good.
func (h *hysteresis) currentText(now string) string {
	if h.track.State == OK || h.lastBad == h.now {
		return now
	}
	return cmp.Or(h.lastText, h.track.Reason) + ", until just now"
}

// rules returns the rules, with their conditions in words and the current reading.
func (h *hysteresis) rules(bad, well string, now func() string) []rule {
	if h.badFor > 0 {
		bad += " for " + show(h.badFor)
	}
	return []rule{
		{
			[]State{OK},
			Warm, h.code, bad,
			when(func() bool { return h.now-h.lastOK >= h.badFor && h.lastOK < h.now }, now), false,
		},
		{
			[]State{Warm},
			OK, "", well + " for " + show(h.wellFor),
			when(func() bool { return h.now-h.lastBad >= h.track.patience(OK, h.wellFor, h.now) }, now), true,
		},
	}
}

// when returns the condition of a rule. It formats the text only if the condition holds, because most conditions rarely
// do.
func when(met func() bool, now func() string) func() (string, bool) {
	return func() (string, bool) {
		if !met() {
			return "", false
		}
		return now(), true
	}
}
