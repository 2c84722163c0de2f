// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package health

import (
	"cmp"
	"time"
)

// spell times a finding that needs more than one reading: it begins after bad readings for badFor, and ends after good
// readings for wellFor.
type spell struct {
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

// see records a reading. A reading between the limits is neither bad nor well. So is an unknown reading, which has no
// text.
func (s *spell) see(now time.Duration, bad, well bool, text string) {
	s.now = now
	if !s.begun {
		s.begun, s.lastOK, s.lastBad = true, now, now
	}
	if !bad {
		s.lastOK = now
	}
	if !well {
		s.lastBad, s.lastText = now, cmp.Or(text, s.lastText)
	}
}

// currentText returns the text: the current reading, or the last bad one while the check is recovering.
func (s *spell) currentText(now string) string {
	if s.track.State == OK || s.lastBad == s.now {
		return now
	}
	return cmp.Or(s.lastText, s.track.Reason) + ", until just now"
}

// rules returns the rules, with their conditions in words and the current reading.
func (s *spell) rules(bad, well string, now func() string) []rule {
	if s.badFor > 0 {
		bad += " for " + show(s.badFor)
	}
	return []rule{
		{
			[]State{OK},
			Warm, s.code, bad,
			when(func() bool { return s.now-s.lastOK >= s.badFor && s.lastOK < s.now }, now), false,
		},
		{
			[]State{Warm},
			OK, "", well + " for " + show(s.wellFor),
			when(func() bool { return s.now-s.lastBad >= s.track.patience(OK, s.wellFor, s.now) }, now), true,
		},
	}
}

// when returns the condition of a rule. It formats the text only if the condition holds, because it rarely does.
func when(met func() bool, now func() string) func() (string, bool) {
	return func() (string, bool) {
		if !met() {
			return "", false
		}
		return now(), true
	}
}
