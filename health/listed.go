// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package health

import (
	"fmt"
	"strings"
	"time"
)

// listed is the evidence of a check that looks for unhealthy items, such as drives. The check has a finding while there
// are such items, and lists them.
type listed struct {
	plain
	hysteresis

	// look returns the unhealthy items, each with its measurement and limit. bad means that the check already has a
	// finding; limits with hysteresis depend on that.
	look func(in Input, bad bool) []string
	// missing returns why there is nothing to check; empty if there is something.
	missing func(Input) string
	// partly returns the items that cannot be checked, with the reason; nil if that cannot happen.
	partly func(Input) []string
	// bad and well describe a finding and the absence of one, for display.
	bad, well string

	why    string
	silent []string // items without a reading
	found  []string
	lasted int           // how many items have been unhealthy for badFor
	rose   time.Duration // the number of unhealthy items has been greater than lasted since then
}

// listedMost is the maximum number of items in a list.
const listedMost = 3

func (l *listed) read(in Input) {
	l.silent = nil
	if l.why = l.missing(in); l.why != "" {
		l.record(in.Now, false, false, "")
		return
	}
	if l.partly != nil {
		l.silent = l.partly(in)
	}
	l.found = l.look(in, l.track.State != OK)
	l.record(in.Now, len(l.found) > 0, len(l.found) == 0, l.present())
	if n := len(l.found); n <= l.lasted || l.now-l.rose >= l.badFor {
		l.lasted, l.rose = n, l.now
	}
}

func (l *listed) count() int { return l.lasted }

func (l *listed) unknown() []string { return l.silent }

func (l *listed) absent() string { return l.why }

func (l *listed) present() string { return enumerated(l.found, l.well) }

func (l *listed) text() string { return l.currentText(l.present()) }

func (l *listed) transitions() []rule { return l.rules(l.bad, l.well, l.present) }

// enumerated lists the first few unhealthy items; without items, it returns the given text.
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
