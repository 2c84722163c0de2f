// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package health

import (
	"errors"
	"fmt"
	"slices"
	"time"
)

// counted is the evidence of a check that compares the growth of a counter over a span with a limit. The count at the
// first reading is ignored, because it is unknown when the counted events occurred.
type counted struct {
	plain

	now    time.Duration
	code   Code
	limit  Limit
	span   time.Duration
	of     func(Input) Figure
	words  func(n float64, l Limit) string
	figure Figure
	kept   growth
}

// growth is the recent growth of a counter. It survives a restart of the agent.
type growth struct {
	Seen  bool    `json:"seen,omitempty"` // whether Last is set
	Last  float64 `json:"last,omitempty"`
	Marks []mark  `json:"marks,omitempty"`
}

// mark is one increase of the counter: by N since the previous reading, observed at At.
type mark struct {
	At time.Duration `json:"at"`
	N  float64       `json:"n"`
}

// growthKept bounds the number of marks; beyond it, the oldest marks are merged.
const growthKept = 64

func (c *counted) read(in Input) {
	c.now, c.figure = in.Now, c.of(in)
	if c.figure.Known {
		if c.figure.Value < c.kept.Last {
			c.kept.Last = 0 // the counter has restarted from 0, because etcd or the driver was restarted
		}
		c.kept.take(c.now, c.figure.Value)
	}
	c.kept.age(c.now, c.span)
}

// take records the counter's current value.
func (k *growth) take(now time.Duration, value float64) {
	if k.Seen && value > k.Last {
		k.Marks = append(k.Marks, mark{now, value - k.Last})
	}
	k.Seen, k.Last = true, value
	for len(k.Marks) > growthKept {
		k.Marks[1].N += k.Marks[0].N
		k.Marks = slices.Delete(k.Marks, 0, 1)
	}
}

// age drops marks older than the span.
func (k *growth) age(now, span time.Duration) {
	k.Marks = slices.DeleteFunc(k.Marks, func(m mark) bool { return now-m.At >= span })
}

// sum returns the growth over the span.
func (k growth) sum() (n float64) {
	for _, m := range k.Marks {
		n += m.N
	}
	return n
}

// check returns an error if the growth is impossible in a snapshot from the given time.
func (k growth) check(at time.Duration) error {
	if len(k.Marks) > growthKept {
		return fmt.Errorf("it has %d marks of a counter, more than %d", len(k.Marks), growthKept)
	}
	for _, m := range k.Marks {
		if !past(at, m.At) {
			return errImpossible
		}
		if !(m.N > 0) {
			return errors.New("it has a counter that did not grow")
		}
	}
	return nil
}

func (c *counted) grade() float64 { return c.limit.grade(c.kept.sum()) }

func (c *counted) absent() string { return c.figure.absent() }

func (c *counted) text() string { return c.words(c.kept.sum(), c.limit) }

func (c *counted) transitions() []rule {
	return []rule{
		{
			[]State{OK},
			Warm, c.code, fmt.Sprintf("%s over %.10g in %s", c.limit.Of, c.limit.Enter, show(c.span)),
			when(func() bool { return c.limit.beyond(c.kept.sum(), false) }, c.text),
			false,
		},
		{
			[]State{Warm},
			OK, "", fmt.Sprintf("%s at most %.10g in %s", c.limit.Of, c.limit.Leave, show(c.span)),
			when(func() bool { return !c.limit.beyond(c.kept.sum(), true) }, c.text),
			false, // recovery time does not double, because a recovery already takes a whole span
		},
	}
}

func (c *counted) memory() any { return c.kept }

func (c *counted) recall(memory []byte, at, _ time.Duration) error {
	var k growth
	if err := strictly(memory, &k); err != nil {
		return err
	}
	if err := k.check(at); err != nil {
		return err
	}
	c.kept = k
	return nil
}
