// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package health

import "time"

// seen is the evidence of a check of something that is wrong or is not: while it is wrong for long enough things are
// bad, while it is not for a while they are well again.
type seen struct {
	plain

	now     time.Duration
	code    Code
	wrong   string // when it is wrong, for people
	well    string // and when it is not
	badFor  time.Duration
	wellFor time.Duration // before patience doubles that
	track   *track
	of      func(Input) sight
	sight   sight
	told    string // what was wrong when it was wrong last
	begun   bool
	lastOK  time.Duration // when it was last not wrong
	lastBad time.Duration // when it was last wrong, or not known
}

// sight is what there is to see at one moment.
type sight struct {
	wrong string // what is wrong with its numbers, for people; empty when nothing is
	why   string // why nothing can be seen, without numbers that change; empty when it can
}

func (s *seen) read(in Input) {
	s.now, s.sight = in.Now, s.of(in)
	if !s.begun {
		s.begun, s.lastOK, s.lastBad = true, s.now, s.now
	}
	if s.sight.wrong == "" || s.sight.why != "" {
		s.lastOK = s.now
	}
	if s.sight.wrong != "" || s.sight.why != "" {
		s.lastBad = s.now
	}
	if s.sight.wrong != "" {
		s.told = s.sight.wrong
	}
}

func (s *seen) absent() string { return s.sight.why }

func (s *seen) text() string {
	switch {
	case s.sight.wrong != "":
		return s.sight.wrong
	case s.told != "":
		return s.told + ", until just now"
	}
	return s.track.Reason
}

func (s *seen) ways() []rule {
	lasting := ""
	if s.badFor > 0 {
		lasting = " for " + show(s.badFor)
	}
	return []rule{
		{
			[]State{OK},
			Warm, s.code, s.wrong + lasting,
			func() (string, bool) { return s.sight.wrong, s.now-s.lastOK >= s.badFor && s.lastOK < s.now },
			false,
		},
		{
			[]State{Warm},
			OK, "", s.well + " for " + show(s.wellFor),
			func() (string, bool) {
				return s.well, s.now-s.lastBad >= s.track.patience(OK, s.wellFor, s.now)
			},
			true,
		},
	}
}
