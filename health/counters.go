// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package health

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"
)

// counters is the evidence of a check of several error counters. The check has a finding while one of them has grown
// within the span by more than is tolerated. The counts at the first reading are ignored.
type counters struct {
	plain

	code      Code
	span      time.Duration
	over      string // the span as text, such as "a day"
	bad, well string
	missing   func(Input) string   // why there are no counters to read; "" if there are some
	partly    func(Input) []string // items without a reading while others have one; may be nil
	look      func(Input) []counter

	why    string            // why there are no counters to read, as last returned by missing
	silent []string          // items without a reading, as last returned by partly
	found  []string          // counters that have grown by more than is tolerated
	grown  float64           // total growth of the counters in found
	kept   map[string]growth // growth of each counter, by its key
}

// counter is one error counter.
type counter struct {
	key       string // identifies the counter across restarts of the agent
	title     string // name of the drive or device
	of        string // what is counted, such as "media errors"
	value     float64
	tolerated float64 // highest growth within the span without a finding
}

// countersKept bounds how many counters are remembered.
const countersKept = 256

func (e *counters) read(in Input) {
	e.why, e.silent = e.missing(in), nil
	for key, k := range e.kept {
		k.age(in.Now, e.span)
		e.kept[key] = k
	}
	if e.why != "" {
		return
	}
	e.found, e.grown = nil, 0
	if e.partly != nil {
		e.silent = e.partly(in)
	}
	for _, c := range e.look(in) {
		k, known := e.kept[c.key]
		if !known && len(e.kept) >= countersKept {
			continue
		}
		k.take(in.Now, c.value)
		e.kept[c.key] = k
		if n := k.sum(); n > c.tolerated {
			e.grown += n
			e.found = append(e.found, fmt.Sprintf("%s: %.0f more %s in %s, limit %.0f", c.title, n, c.of, e.over,
				c.tolerated))
		}
	}
}

func (e *counters) count() int { return len(e.found) }

func (e *counters) grade() float64 { return Limit{}.grade(e.grown) }

func (e *counters) absent() string { return e.why }

func (e *counters) unknown() []string { return e.silent }

func (e *counters) text() string { return enumerated(e.found, e.well+" in "+show(e.span)) }

func (e *counters) transitions() []rule {
	return []rule{
		{
			[]State{OK},
			Warm, e.code, e.bad + " in " + show(e.span),
			func() (string, bool) { return e.text(), len(e.found) > 0 }, false,
		},
		{
			[]State{Warm},
			OK, "", e.well + " in " + show(e.span),
			func() (string, bool) { return e.text(), len(e.found) == 0 },
			false, // recovery time does not double, because a recovery already takes a whole span
		},
	}
}

func (e *counters) memory() any { return e.kept }

func (e *counters) recall(memory []byte, at, _ time.Duration) error {
	var kept map[string]growth
	if err := strictly(memory, &kept); err != nil {
		return err
	}
	if len(kept) > countersKept {
		return fmt.Errorf("it has %d counters of errors, more than %d", len(kept), countersKept)
	}
	for _, key := range slices.Sorted(maps.Keys(kept)) {
		if err := kept[key].check(at); err != nil {
			return err
		}
		if !kept[key].Seen {
			return errors.New("it has a counter without a reading")
		}
	}
	if kept != nil {
		e.kept = kept
	}
	return nil
}
