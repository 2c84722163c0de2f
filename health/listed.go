// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package health

import (
	"fmt"
	"strings"
	"time"
)

// listed is the evidence of a check that looks at several things of a kind: it finds something while one of them is not
// well, and names those.
type listed struct {
	plain

	code  Code
	track *track
	// look gives what is not well, each with what was measured and its limit. Bad says that the check has found
	// something already, for limits that are left at another number.
	look func(in Input, bad bool) []string
	// missing says why there is nothing to look at.
	missing func(Input) string
	// sick and well say when something is not well and when all is, for people.
	sick, well string
	badFor     time.Duration
	wellFor    time.Duration

	begun   bool
	now     time.Duration
	why     string
	found   []string
	lastOK  time.Duration
	lastBad time.Duration
}

// listedMost is how many things are named.
const listedMost = 3

func (l *listed) read(in Input) {
	l.now, l.why = in.Now, l.missing(in)
	if !l.begun {
		l.begun, l.lastOK, l.lastBad = true, l.now, l.now
	}
	if l.why != "" {
		l.lastOK, l.lastBad = l.now, l.now
		return
	}
	l.found = l.look(in, l.track.State != OK)
	if len(l.found) == 0 {
		l.lastOK = l.now
	} else {
		l.lastBad = l.now
	}
}

func (l *listed) absent() string { return l.why }

func (l *listed) text() string { return enumerated(l.found, l.well) }

// enumerated names the first few things that are not well, or says that all is.
func enumerated(found []string, well string) string {
	if len(found) == 0 {
		return well
	}
	text := strings.Join(found[:min(len(found), listedMost)], "; ")
	if more := len(found) - listedMost; more > 0 {
		text += fmt.Sprintf("; and %d more", more)
	}
	return text
}

func (l *listed) ways() []rule {
	lasting := ""
	if l.badFor > 0 {
		lasting = " for " + show(l.badFor)
	}
	return []rule{
		{
			[]State{OK},
			Warm, l.code, l.sick + lasting,
			func() (string, bool) { return l.text(), len(l.found) > 0 && l.now-l.lastOK >= l.badFor },
			false,
		},
		{
			[]State{Warm},
			OK, "", l.well + " for " + show(l.wellFor),
			func() (string, bool) {
				return l.text(), len(l.found) == 0 && l.now-l.lastBad >= l.track.patience(OK, l.wellFor, l.now)
			},
			true,
		},
	}
}
