// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"time"

	"github.com/quorumd/quorumd/health"
)

// family is a type of storage, described by how long its writes take while nothing is wrong. Write times are log-normal
// around a median, which drifts from minute to minute and with the time of day. A few writes take much longer.
type family struct {
	name   string
	median time.Duration // median duration of a direct write
	spread float64       // σ of the logarithm of a write's duration
	drift  float64       // σ of the logarithm of a minute's drift
	daily  float64       // relative change of the median over the day
	log    float64       // factor for a write of the WAL lane, which also waits for the file system
	// tails is the share of writes that take longer by a log-uniform factor between tailLow and tailHigh.
	tails             float64
	tailLow, tailHigh float64
	// hiccups is how many times a day the drive is slow for two to four seconds on its own, with writes that take up to
	// forty times as long.
	hiccups float64
	starved float64 // share of writes spoiled by CPU starvation
	// limits are the operator's own limits, if the defaults do not suit the medium.
	limits func(*health.Thresholds)
}

// families returns all types of storage.
func families() []family {
	const ms, us = time.Millisecond, time.Microsecond
	return []family{
		{
			name: "plp", median: 120 * us, spread: 0.3, drift: 0.08, daily: 0.1, log: 1.3,
			tails: 5e-5, tailLow: 5, tailHigh: 40, hiccups: 0.5,
		},
		{
			name: "nvme", median: 1200 * us, spread: 0.4, drift: 0.1, daily: 0.15, log: 1.3,
			tails: 2e-4, tailLow: 4, tailHigh: 30, hiccups: 4,
		},
		{
			name: "nvme-fast", median: 890 * us, spread: 0.35, drift: 0.1, daily: 0.15, log: 1.3,
			tails: 2e-4, tailLow: 4, tailHigh: 30, hiccups: 4,
		},
		{
			name: "sata", median: 2400 * us, spread: 0.3, drift: 0.12, daily: 0.15, log: 1.2,
			tails: 2e-4, tailLow: 4, tailHigh: 25, hiccups: 4,
		},
		{
			name: "hdd", median: 14 * ms, spread: 0.35, drift: 0.12, daily: 0.2, log: 1.3,
			tails: 5e-4, tailLow: 3, tailHigh: 12, hiccups: 4,
		},
		{
			name: "hdd-limits", median: 14 * ms, spread: 0.35, drift: 0.12, daily: 0.2, log: 1.3,
			tails: 5e-4, tailLow: 3, tailHigh: 12, hiccups: 4,
			limits: func(t *health.Thresholds) {
				t.FsyncWarm, t.FsyncClear, t.FsyncSlow = 100*ms, 50*ms, 300*ms
			},
		},
		{
			name: "bbu", median: 100 * us, spread: 0.3, drift: 0.1, daily: 0.15, log: 1.5,
			tails: 5e-4, tailLow: 10, tailHigh: 80, hiccups: 3,
		},
		{
			name: "virtual", median: 3200 * us, spread: 0.45, drift: 0.2, daily: 0.25, log: 1.3,
			tails: 1e-3, tailLow: 3, tailHigh: 15, hiccups: 12, starved: 0.002,
		},
	}
}

// storage returns the family with the given name.
func storage(name string) family {
	for _, f := range families() {
		if f.name == name {
			return f
		}
	}
	panic("failslow: no storage family " + name)
}

// thresholds returns the thresholds of a host with this storage.
func (f family) thresholds() health.Thresholds {
	t := health.DefaultThresholds()
	if f.limits != nil {
		f.limits(&t)
	}
	return t
}
