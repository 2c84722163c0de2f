// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package health

import (
	"fmt"
	"strings"
	"time"
)

// listed is the evidence of a check that looks for things that are not well: it finds something while there is one, and
// names them.
type listed struct {
	plain
	spell

	// look gives what is not well, each with what was measured and its limit. Bad says that the check has found
	// something already, for limits that are left at another number.
	look func(in Input, bad bool) []string
	// missing says why there is nothing to look at.
	missing func(Input) string
	// partly says of which things nothing is known, and why, while others are looked at; nil where that cannot be.
	partly func(Input) []string
	// sick and well say when something is not well and when all is, for people.
	sick, well string

	why    string
	silent []string // things of which nothing is known
	found  []string
	lasted int           // how many things were not well for long enough
	rose   time.Duration // when it was last not more than that
}

// listedMost is how many things are named.
const listedMost = 3

func (l *listed) read(in Input) {
	l.silent = nil
	if l.why = l.missing(in); l.why != "" {
		l.see(in.Now, false, false, "")
		return
	}
	if l.partly != nil {
		l.silent = l.partly(in)
	}
	l.found = l.look(in, l.track.State != OK)
	l.see(in.Now, len(l.found) > 0, len(l.found) == 0, l.present())
	if n := len(l.found); n <= l.lasted || l.now-l.rose >= l.badFor {
		l.lasted, l.rose = n, l.now
	}
}

func (l *listed) count() int { return l.lasted }

func (l *listed) unknown() []string { return l.silent }

func (l *listed) absent() string { return l.why }

func (l *listed) present() string { return enumerated(l.found, l.well) }

func (l *listed) text() string { return l.tell(l.present()) }

func (l *listed) ways() []rule { return l.rules(l.sick, l.well, l.present) }

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
