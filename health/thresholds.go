// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package health

import (
	"errors"
	"fmt"
	"time"
)

// Thresholds are the numbers that decide the health state. Most are settings of the same name in the disk section of
// the configuration.
type Thresholds struct {
	// QualifySamples is how many writes of the WAL lane a qualifying run needs. About 3000 clean writes are needed to
	// show, with 95 % confidence, that at most one in a thousand is slow.
	QualifySamples int
	// Window is how many uncontaminated samples a decision is based on, at least 20. About 300 clean samples are needed
	// to show, with 95 % confidence, that at most 1 % are slow. A window below 300 shortens, in proportion, the times
	// that are not settings.
	Window int

	// FsyncWarm is the limit of the 99th percentile: 10 ms in etcd's guide.
	FsyncWarm time.Duration
	// FsyncClear is the limit that all but 1 % of the writes of a WARM disk must meet before it is OK.
	FsyncClear time.Duration
	// FsyncSlow is a latency that a healthy disk never reaches: 100 ms, etcd's heartbeat.
	FsyncSlow time.Duration
	// Stall is the age beyond which a write in flight means that the disk hangs: 1 s, etcd's election timeout.
	Stall time.Duration
	// Fail is the age beyond which a write in flight means that the disk is broken: 30 s, after which Linux resets an
	// NVMe or SCSI device.
	Fail time.Duration

	// Starved is the percentage of a minute's samples contaminated by CPU starvation above which there is a finding
	// about CPU starvation. From 1 to 100; 100 turns that finding off.
	Starved int

	// MinFree is how many bytes must be free.
	MinFree uint64
	// DirectInterval is the rest between two writes of the direct lane, after which the next sample is due.
	DirectInterval time.Duration

	// ExternalChecks are the operator's own checks.
	ExternalChecks []ExternalCheck
}

// DefaultThresholds returns the thresholds for production.
func DefaultThresholds() Thresholds {
	return Thresholds{
		QualifySamples: 3000, Window: 300,
		FsyncWarm: 10 * time.Millisecond, FsyncClear: 5 * time.Millisecond, FsyncSlow: 100 * time.Millisecond,
		Stall: time.Second, Fail: 30 * time.Second,
		Starved: 20, MinFree: 1 << 30, DirectInterval: time.Second,
	}
}

// fewest is the smallest allowed window. In a smaller one, excluding chance would need so many slow writes that the
// decision would come too late.
const fewest = 20

func (t Thresholds) check() error {
	var wrong []error
	if t.Window < fewest {
		wrong = append(wrong, fmt.Errorf("window is %d; make it %d or more", t.Window, fewest))
	}
	if t.QualifySamples < t.Window {
		wrong = append(wrong, fmt.Errorf("qualifySamples is %d, but window is %d; make qualifySamples at "+
			"least as large", t.QualifySamples, t.Window))
	}
	limits := []struct {
		name  string
		value time.Duration
	}{
		{"0", 0},
		{"fsyncClear", t.FsyncClear},
		{"fsyncWarm", t.FsyncWarm},
		{"fsyncSlow", t.FsyncSlow},
		{"stall", t.Stall},
		{"fail", t.Fail},
	}
	for i, high := range limits[1:] {
		if low := limits[i]; high.value <= low.value {
			least := low.name
			if i > 0 {
				least += ", which is " + low.value.String()
			}
			wrong = append(wrong, fmt.Errorf("%s is %s; make it more than %s", high.name, high.value, least))
		}
	}
	if t.Starved < 1 || t.Starved > 100 {
		wrong = append(wrong, fmt.Errorf("starved is %d; make it 1 to 100", t.Starved))
	}
	if t.DirectInterval <= 0 {
		wrong = append(wrong, fmt.Errorf("directInterval is %s; make it more than 0", t.DirectInterval))
	}
	return errors.Join(wrong...)
}

// tail is the limit that all but one in a thousand writes of a qualifying run must meet: 50 ms.
func (t Thresholds) tail() time.Duration { return 5 * t.FsyncWarm }

// outlier is the latency beyond which a single write counts: 500 ms, the slowest that etcdctl check perf accepts.
func (t Thresholds) outlier() time.Duration { return 5 * t.FsyncSlow }

// calm is the latency that every write of the direct lane must stay below before a WARM disk is OK again: 25 ms, as
// Pebble requires before it uses a disk again.
func (t Thresholds) calm() time.Duration { return t.FsyncWarm * 5 / 2 }

// pace holds the durations that are not settings.
type pace struct {
	round    time.Duration // a round of the slow score; TiKV: 3 s at ten samples a second
	sharp    time.Duration // the span whose 99th percentile is compared with FsyncSlow
	streak   time.Duration // how long consecutive writes must be over FsyncWarm
	outliers time.Duration // the span in which outliers are counted
	decay    time.Duration // how long the slow score takes to fall from 100 to 0 by itself; TiKV: 5 min
	settle   time.Duration // how long a WARM disk must be steady before it is OK
	newest   time.Duration // the span that shows whether writes are slow at this moment
	clean    time.Duration // how long a SLOW disk must have no slow write before it is WARM
	calm     time.Duration // how long all writes of the direct lane must be below the limit calm; Pebble: 15 s
	silent   time.Duration // how long a sample must be overdue to count as missing
	unjudged time.Duration // how long all samples must be contaminated to count as missing
}

func (t Thresholds) pace() pace {
	scaled := func(d time.Duration) time.Duration {
		return d / 300 * time.Duration(min(t.Window, 300))
	}
	return pace{
		round:    max(scaled(10*time.Second), t.DirectInterval),
		sharp:    max(scaled(time.Minute), min(5*t.DirectInterval, time.Minute)), // fewer writes prove nothing
		streak:   scaled(5 * time.Second),
		outliers: scaled(10 * time.Minute),
		decay:    scaled(5 * time.Minute),
		settle:   scaled(5 * time.Minute),
		newest:   scaled(20 * time.Second),
		clean:    scaled(15 * time.Minute),
		calm:     max(scaled(15*time.Second), 3*t.DirectInterval),
		// long enough that a probe that waits for a CPU does not count as silent
		silent:   max(3*t.DirectInterval+t.Stall, 5*time.Second),
		unjudged: max(scaled(5*time.Minute), 10*t.DirectInterval),
	}
}
