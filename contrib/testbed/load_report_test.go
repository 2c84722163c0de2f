// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package testbed

import (
	"errors"
	"testing"
	"time"
)

func TestTheLongestGapMayBeAtTheBeginningBetweenOrAtTheEnd(t *testing.T) {
	t.Parallel()
	began := time.Now()
	for _, c := range []struct {
		name         string
		acks         []int // seconds after the beginning, in the order of sending; the load lasted 10
		gap, gapFrom int
	}{
		{"no write was acknowledged", nil, 10, 0},
		{"at the beginning", []int{6, 7, 9}, 6, 0},
		{"between, out of order", []int{2, 8, 1, 3}, 5, 3},
		{"at the end", []int{1, 2, 3}, 7, 3},
		{"an acknowledgement after the end", []int{3, 6, 12}, 6, 6},
	} {
		l := &WriteLoad{
			began: began, ended: began.Add(10 * time.Second),
			writes: []Write{{Err: errors.New("failed")}, {}},
		}
		for _, s := range c.acks {
			l.writes = append(l.writes, Write{Acked: began.Add(time.Duration(s) * time.Second)})
		}
		r := l.Report()
		if r.LongestGap != time.Duration(c.gap)*time.Second ||
			r.GapBegan.Sub(began) != time.Duration(c.gapFrom)*time.Second {
			t.Errorf("%s: %v from %v, want %d s from %d s", c.name, r.LongestGap, r.GapBegan.Sub(began), c.gap,
				c.gapFrom)
		}
		if r.Acked != len(c.acks) || r.Failed != 1 {
			t.Errorf("%s: %d acknowledged, %d failed", c.name, r.Acked, r.Failed)
		}
	}
}

func TestAGapWithinASpanCountsFromItsBeginningToItsEnd(t *testing.T) {
	t.Parallel()
	began := time.Now()
	at := func(s int) time.Time { return began.Add(time.Duration(s) * time.Second) }
	r := LoadReport{Writes: []Write{{Acked: at(30)}, {Acked: at(1)}, {Acked: at(12)}, {Acked: at(14)}, {}}}
	for _, c := range []struct{ from, to, want int }{{10, 20, 6}, {2, 15, 10}, {13, 14, 1}, {15, 25, 10}} {
		if got := r.GapWithin(at(c.from), at(c.to)); got != time.Duration(c.want)*time.Second {
			t.Errorf("from %d s to %d s: %v, want %d s", c.from, c.to, got, c.want)
		}
	}
}
