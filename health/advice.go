// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package health

import (
	"fmt"
	"time"
)

// advice declares a check that has one finding, of state WARM, and usually gates nothing. Most checks are of this type.
type advice struct {
	name      string
	component Component
	behind    []string // see [Check.Behind]
	source    string   // what the check reads, for display
	gates     Gate
	limit     Limit
	also      []Limit // further limits

	// The finding.
	code                   Code
	title, meaning, remedy string

	// measure returns new evidence. It is the result of grows, exceeds, lists or errorCounts, or a function of the
	// check's own.
	measure func(advice, *track) evidence
}

func (a advice) declare() declaration {
	return declaration{
		Check: Check{
			Name: a.name, Component: a.component, Gates: a.gates, Behind: a.behind, Source: a.source,
			Limits:   append([]Limit{a.limit}, a.also...),
			Problems: []Problem{{a.code, a.component, Warm, a.title, a.meaning, a.remedy}},
			Runbook:  findingRunbook,
		},
		start:  OK,
		gather: func(at *track) evidence { return a.measure(a, at) },
	}
}

// grows returns the measure of a check that compares the growth of a kernel counter over a span with the limit.
func grows(span time.Duration, of func(Input) Figure, words func(float64, Limit) string,
) func(advice, *track) evidence {
	return func(a advice, _ *track) evidence {
		return &counted{code: a.code, limit: a.limit, span: span, of: of, words: words}
	}
}

// exceeds returns the measure of a check that compares a figure with the limit. A finding begins after badFor and ends
// after wellFor.
func exceeds(badFor, wellFor time.Duration, of func(Input) Figure, words func(float64, Limit) string,
) func(advice, *track) evidence {
	return func(a advice, at *track) evidence {
		return &level{
			hysteresis: hysteresis{code: a.code, track: at, badFor: badFor, wellFor: wellFor},
			limit:      a.limit, of: of, words: words,
		}
	}
}

// lists returns the measure of a check that lists unhealthy items. A finding begins after badFor and ends after
// wellFor.
func lists(badFor, wellFor time.Duration, l listed) func(advice, *track) evidence {
	return func(a advice, at *track) evidence {
		e := l
		e.hysteresis = hysteresis{code: a.code, track: at, badFor: badFor, wellFor: wellFor}
		return &e
	}
}

// errorCounts returns the measure of a check of several error counters.
func errorCounts(c counters) func(advice, *track) evidence {
	return func(a advice, _ *track) evidence {
		e := c
		e.code, e.kept = a.code, map[string]growth{}
		return &e
	}
}

// withLimit returns a function that formats a value and the limit.
func withLimit(format string) func(float64, Limit) string {
	return func(value float64, l Limit) string { return fmt.Sprintf(format, value, l.Enter) }
}
