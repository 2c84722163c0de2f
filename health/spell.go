// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package health

import (
	"cmp"
	"time"
)

// spell is the timing of evidence that no single look decides: things are bad for long enough before the check finds
// something, and well for long enough before that is over.
type spell struct {
	code    Code
	track   *track
	badFor  time.Duration
	wellFor time.Duration // before patience doubles that

	begun   bool
	now     time.Duration
	lastOK  time.Duration // when things were last not bad, or not known
	lastBad time.Duration // when they were last not well, or not known
	told    string        // what was wrong when they were last not well
}

// see takes in how things are: bad enough to be found, well enough for that to be over, and in words. Neither is so in
// between, nor while nobody can tell; then there are no words.
func (s *spell) see(now time.Duration, bad, well bool, text string) {
	s.now = now
	if !s.begun {
		s.begun, s.lastOK, s.lastBad = true, now, now
	}
	if !bad {
		s.lastOK = now
	}
	if !well {
		s.lastBad, s.told = now, cmp.Or(text, s.told)
	}
}

// tell gives the text: how things are now, or what was found while they are on their way back.
func (s *spell) tell(now string) string {
	if s.track.State == OK || s.lastBad == s.now {
		return now
	}
	return cmp.Or(s.told, s.track.Reason) + ", until just now"
}

// rules gives the ways, whose conditions are in words, with how things are now.
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

// when gives the condition of a rule, which is put into words only where it holds: most looks change nothing.
func when(met func() bool, now func() string) func() (string, bool) {
	return func() (string, bool) {
		if !met() {
			return "", false
		}
		return now(), true
	}
}
