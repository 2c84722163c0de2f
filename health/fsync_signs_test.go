// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package health

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/quorumd/quorumd/disk"
)

// A leader whose disk abruptly becomes slow has to lose the leadership soon, so the first slow writes must be enough.
func TestAnAbruptlySlowDiskIsFoundByItsFirstWrites(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		took, every time.Duration
		want        []State // after each write
		says        string
	}{
		{
			11 * ms, time.Second,
			[]State{OK, OK, OK, OK, OK, Warm},
			"6 writes in a row took longer than 10 ms within 5 s, the slowest 11 ms; limit 5",
		},
		{ // like a disk during its internal cleanup
			40 * ms, time.Second / 2,
			[]State{OK, OK, OK, OK, OK, OK, OK, OK, OK, OK, Warm},
			"11 of the last 300 writes took longer than 10 ms, limit 10",
		},
		{
			101 * ms, time.Second,
			[]State{OK, OK, Warm, Warm, Slow},
			"fsync p99 101 ms over the last 60 s (61 writes), limit 100 ms",
		},
		{
			501 * ms, time.Second,
			[]State{OK, Warm, Slow},
			"3 writes took longer than 500 ms within 10 min, the slowest 501 ms; limit 1",
		},
	} {
		b := member(t)
		var got []State
		for range c.want {
			b.now += c.every
			b.sample(disk.LaneDirect, c.took)
			b.look()
			got = append(got, b.disk())
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("after writes of %s: %s, want %s", c.took, got, c.want)
		}
		b.hasText(c.says)
	}
}

func TestConsecutiveWritesAreOfOneLane(t *testing.T) {
	t.Parallel()
	b := member(t)
	for i := range 4 { // the file system is slow, and the device is not
		b.each(9*time.Second, ms)
		b.now += time.Second
		b.sample(disk.LaneWAL, 120*ms)
		b.look()
		if want := map[bool]State{true: OK, false: Warm}[i < 2]; b.disk() != want {
			t.Errorf("after %d writes: %s, want %s", i+1, b.disk(), want)
		}
	}
	b.hasText("3 writes in a row took longer than 100 ms within 20 s, the slowest 120 ms; limit 2")
}

// Slow writes that are too rare for the p99 still block a leader's writes for half a second each.
func TestADiskOnWhichOneWriteInAHundredHangsIsFoundWithinMinutes(t *testing.T) {
	t.Parallel()
	var took []time.Duration
	for seed := range uint64(20) {
		b, r := member(t), rand.New(rand.NewPCG(seed, 3))
		began := b.now
		for b.disk() == OK && b.now-began < time.Hour {
			b.each(time.Second, map[bool]time.Duration{true: 501 * ms, false: ms}[r.IntN(100) == 0])
		}
		b.want(Warm)
		b.hasText("2 writes took longer than 500 ms within 10 min, the slowest 501 ms; limit 1")
		b.hasText("and at most 1 longer than 500 ms within 10 min (now 2)")
		took = append(took, b.now-began)
	}
	slices.Sort(took)
	if median, most := took[len(took)/2], took[len(took)-1]; median > 4*time.Minute || most > 20*time.Minute {
		t.Errorf("it took %s, and %s at most", median, most)
	}
}

func TestAnOccasionallySlowDiskIsFoundByTheLongWindow(t *testing.T) {
	t.Parallel()
	b := member(t)
	for range 19 { // at most 7 of any 300
		b.each(44*time.Second, ms)
		b.each(time.Second, 11*ms)
	}
	b.want(OK)
	b.each(44*time.Second, ms)
	b.each(time.Second, 11*ms)
	b.want(Warm)
	b.hasText("20 of the last 900 writes took longer than 10 ms, limit 19")
	b.each(320*time.Second, ms) // 300 clean samples are enough only if the long window shows no sign
	b.want(OK)
	if slices.ContainsFunc(b.changes[len(b.changes)-1:], func(c Change) bool { return c.From != Warm }) {
		t.Errorf("it flapped: %+v", b.changes)
	}
}

func TestABadDiskIsFoundBeforeTheWindowIsFull(t *testing.T) {
	t.Parallel()
	b := newBench(t, DefaultThresholds())
	b.member = true
	b.each(11*time.Second, 200*ms)
	b.want(Slow)
	want := []State{Warm, Slow}
	var got []State
	for _, c := range b.changes {
		if c.Component == Disk && c.From != Unknown || c.To == Warm {
			got = append(got, c.To)
		}
	}
	if !slices.Equal(got, want) {
		t.Errorf("states %v, want %v", got, want)
	}
}

func TestTwoOutliersTenMinutesApartAreTooMany(t *testing.T) {
	t.Parallel()
	b := member(t)
	b.warm()
	b.each(time.Second, 501*ms)
	b.each(10*time.Minute-time.Second, quiet)
	b.each(time.Second, 501*ms)
	b.want(Slow)
	b.hasText("2 writes took longer than 500 ms within 10 min, the slowest 501 ms; limit 1")
}
