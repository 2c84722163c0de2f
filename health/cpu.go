// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package health

import (
	"fmt"
	"time"
)

const (
	cpuSpan = time.Minute
	// cpuFewest samples are needed to say anything.
	cpuFewest = 10
)

// cpu is the evidence on the processor: how many of the last minute's samples it spoiled.
type cpu struct {
	now     time.Duration
	limit   int // the percentage above which the processor is short; half of it, and it is well again
	track   *track
	recent  samples
	began   time.Duration // of the samples without a gap of a minute
	lastBad time.Duration
}

// cpuCheck judges the processor. It starts as OK: it has no data of its own, and when the samples are missing the disk
// is UNKNOWN already.
func cpuCheck(limit int) (*cpu, *check) {
	c := &cpu{limit: limit, track: &track{}}
	return c, &check{
		name: "cpu", component: Machine, start: OK,
		rules: []rule{
			{[]State{OK}, Warm, CPUStarved, fmt.Sprintf("more than %d %% of the samples of %s contaminated", limit,
				show(cpuSpan)), c.starved, false},
			{[]State{Warm}, OK, "", fmt.Sprintf("at most %d %% of the samples of %s contaminated, for %s", limit/2,
				show(cpuSpan), show(cpuSpan)), c.relieved, true},
		},
		read: c.read, text: c.text, track: c.track,
	}
}

func (c *cpu) read(in Input) {
	c.now = in.Now
	c.recent = append(c.recent, in.Disk.Samples...)
	c.recent = c.recent.keep(len(c.recent.since(c.now - cpuSpan)))
	if len(in.Disk.Samples) > 0 && len(c.recent) <= len(in.Disk.Samples) {
		c.began = in.Disk.Samples[0].End
	}
	if len(c.recent) < cpuFewest || c.percent() > float64(c.limit)/2 {
		c.lastBad = c.now
	}
}

func (c *cpu) contaminated() int {
	n := 0
	for _, s := range c.recent {
		if s.Contaminated {
			n++
		}
	}
	return n
}

func (c *cpu) percent() float64 {
	return 100 * float64(c.contaminated()) / float64(max(1, len(c.recent)))
}

func (c *cpu) starved() (string, bool) {
	return c.text(), len(c.recent) >= cpuFewest && c.now-c.began >= cpuSpan && c.percent() > float64(c.limit)
}

func (c *cpu) relieved() (string, bool) {
	return c.text(), c.now-c.lastBad >= c.track.patience(OK, cpuSpan, c.now)
}

func (c *cpu) text() string {
	return fmt.Sprintf("%d of the last %s contaminated by a lack of processor time, limit %d %%",
		c.contaminated(), plural(len(c.recent), "sample"), c.limit)
}
