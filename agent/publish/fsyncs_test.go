// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package publish

import (
	"testing"
	"time"

	"github.com/quorumd/quorumd/agent/control"
	"github.com/quorumd/quorumd/disk"
)

func took(lane disk.Lane, ms ...int) disk.Reading {
	var r disk.Reading
	for _, m := range ms {
		r.Samples = append(r.Samples, disk.Sample{Lane: lane, Latency: time.Duration(m) * time.Millisecond})
	}
	return r
}

func TestAMinuteOfFsyncsIsTheMedianAndMaximumOfTheWALLane(t *testing.T) {
	t.Parallel()
	var f fsyncs
	at := time.Date(2026, 11, 23, 10, 0, 1, 0, time.UTC)
	f.add(at, took(disk.LaneWAL, 3, 1))
	f.add(at.Add(10*time.Second), took(disk.LaneDirect, 500))
	f.add(at.Add(20*time.Second), took(disk.LaneWAL, 90))
	hung := took(disk.LaneWAL, 2)
	hung.InFlightAge = 7 * time.Second
	f.add(at.Add(3*time.Minute), hung)

	got := f.all()
	want := []control.FsyncMinute{
		{Start: at.Truncate(time.Minute), Count: 3, MedianSeconds: 0.003, MaxSeconds: 0.09},
		{
			Start: at.Truncate(time.Minute).Add(3 * time.Minute), Count: 1, MedianSeconds: 0.002, MaxSeconds: 0.002,
			HungSeconds: 7,
		},
	}
	if len(got) != 2 || got[0] != want[0] || got[1] != want[1] {
		t.Errorf("got %+v\nwant %+v", got, want)
	}
}

func TestTwoHoursOfFsyncsAreKeptAndAClockSetBackStartsOver(t *testing.T) {
	t.Parallel()
	var f fsyncs
	at := time.Date(2026, 11, 23, 10, 0, 0, 0, time.UTC)
	for i := range 3 * control.FsyncMinutes {
		f.add(at.Add(time.Duration(i)*time.Minute), took(disk.LaneWAL, i))
	}
	got := f.all()
	if len(got) != control.FsyncMinutes || got[0].MaxSeconds != float64(2*control.FsyncMinutes)/1000 {
		t.Errorf("kept %d minutes from %+v on", len(got), got[0])
	}
	if f.add(at, took(disk.LaneWAL, 1)); len(f.all()) != 1 {
		t.Errorf("after the clock was set back %d minutes are kept", len(f.all()))
	}
	if f.add(at.Add(1000*time.Hour), took(disk.LaneWAL, 1)); len(f.all()) != 1 {
		t.Errorf("after the clock has leapt ahead %d minutes are kept", len(f.all()))
	}
}
