// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package publish

import (
	"slices"
	"sync"
	"time"

	"github.com/quorumd/quorumd/agent/control"
	"github.com/quorumd/quorumd/disk"
)

// fsyncs keeps the probe's recent measurements, per minute of the wall clock. The loop adds to it; any goroutine may
// read it.
type fsyncs struct {
	mu      sync.Mutex
	minutes []control.FsyncMinute
	now     []float64 // WAL lane measurements of the current minute, in seconds
}

// add adds a reading. If the wall clock was set back, it starts over.
func (f *fsyncs) add(wall time.Time, reading disk.Reading) {
	f.mu.Lock()
	defer f.mu.Unlock()
	start := wall.UTC().Truncate(time.Minute)
	if n := len(f.minutes); n == 0 || !start.Equal(f.minutes[n-1].Start) {
		if n > 0 && start.Before(f.minutes[n-1].Start) {
			f.minutes = nil
		}
		f.minutes, f.now = append(f.minutes, control.FsyncMinute{Start: start}), nil
		oldest := start.Add(-(control.FsyncMinutes - 1) * time.Minute)
		f.minutes = slices.DeleteFunc(f.minutes, func(m control.FsyncMinute) bool { return m.Start.Before(oldest) })
	}
	m := &f.minutes[len(f.minutes)-1]
	for _, s := range reading.Samples {
		if s.Lane == disk.LaneWAL && s.Errno == 0 {
			f.now = append(f.now, s.Latency.Seconds())
		}
	}
	if n := len(f.now); n > 0 {
		slices.Sort(f.now)
		m.Count, m.MedianSeconds, m.MaxSeconds = uint64(n), f.now[n/2], f.now[n-1]
	}
	m.HungSeconds = max(m.HungSeconds, reading.InFlightAge.Seconds())
}

// all returns the minutes, oldest first.
func (f *fsyncs) all() []control.FsyncMinute {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.minutes)
}

// Fsyncs returns the probe's recent measurements per minute, oldest first.
func (p *Publisher) Fsyncs() []control.FsyncMinute { return p.fsyncs.all() }
