// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"flag"
	"testing"
	"testing/synctest"
	"time"
)

var (
	seedFlag  = flag.Uint64("seed", 0, "tell the story of this seed")
	seedsFlag = flag.Int("seeds", 20, "seeds")
	fromFlag  = flag.Uint64("from", 1, "first seed")
	hoursFlag = flag.Float64("hours", 6, "hours with faults of each seed")
)

func run(t *testing.T, opt Options) Result {
	var r Result
	synctest.Test(t, func(t *testing.T) {
		var err error
		if r, err = Run(opt); err != nil {
			t.Fatal(err)
		}
	})
	return r
}

func TestOne(t *testing.T) {
	if *seedFlag == 0 {
		t.Skip()
	}
	r := run(t, Options{Seed: *seedFlag, Faulty: time.Duration(*hoursFlag * float64(time.Hour)), Story: func(s string) { println(s) }})
	t.Logf("%+v", r)
}

func TestMany(t *testing.T) {
	began := time.Now()
	var total time.Duration
	var rec time.Duration
	for i := range *seedsFlag {
		r := run(t, Options{Seed: *fromFlag + uint64(i), Faulty: time.Duration(*hoursFlag * float64(time.Hour))})
		total += r.Lasted
		rec = max(rec, r.Recovered)
		if r.Breach != nil {
			t.Errorf("seed %d: %v (%s)", *fromFlag+uint64(i), r.Breach, r.Plan)
		}
	}
	t.Logf("%.1f h in %s: %s per hour; longest recovery %s", total.Hours(), time.Since(began), time.Since(began)/time.Duration(total.Hours()), rec)
}
