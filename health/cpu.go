// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package health

import (
	"fmt"
	"time"
)

const (
	cpuSpan = time.Minute
	// cpuFewest is the minimum number of samples for any conclusion.
	cpuFewest = 10
)

// CPUStarved is the code of the check of CPU starvation.
const CPUStarved Code = "CPU_STARVED"

// declareCPU declares the check of CPU starvation. It is optional because it has no data of its own: if the samples are
// missing, the disk is UNKNOWN already.
func declareCPU(t Thresholds) declaration {
	limit := Limit{
		Of: "contaminated samples in a minute", Unit: "%", Enter: float64(t.Starved), Leave: float64(t.Starved) / 2,
	}
	return declaration{
		Check: Check{
			Name: "cpu", Component: Machine, Gates: Everything,
			Source: "the scheduling delay of the probe around each of its writes",
			Limits: []Limit{limit},
			Problems: []Problem{
				{
					CPUStarved, Machine, Warm, "This host suffers from CPU starvation.",
					"The probe was not scheduled in time, so its late samples are discarded: they are no evidence " +
						"about the disk. etcd waits for the CPU in the same way.",
					"check 'top' and /proc/pressure/cpu; move other workloads off this host or lower their priority",
				},
			},
			Runbook: findingRunbook,
		},
		start:  OK,
		gather: func(at *track) evidence { return &cpu{limit: limit, track: at} },
	}
}

// cpu is the evidence on CPU starvation: how many samples of the last minute were contaminated by it.
type cpu struct {
	plain

	now     time.Duration
	limit   Limit
	track   *track
	recent  samples
	began   time.Duration // when the current series of samples began; a gap of a minute starts a new series
	lastBad time.Duration // when too many samples were last contaminated, or too few were taken
}

func (c *cpu) transitions() []rule {
	return []rule{
		{[]State{OK}, Warm, CPUStarved, fmt.Sprintf("more than %.0f %% of the samples within %s are contaminated",
			c.limit.Enter, show(cpuSpan)), c.starved, false},
		{[]State{Warm}, OK, "", fmt.Sprintf("at most %d %% of the samples within %s are contaminated, for %s",
			int(c.limit.Leave), show(cpuSpan), show(cpuSpan)), c.relieved, true},
	}
}

func (c *cpu) read(in Input) {
	c.now = in.Now
	c.recent = append(c.recent, in.Disk.Samples...)
	c.recent = c.recent.keep(len(c.recent.since(c.now - cpuSpan)))
	if len(in.Disk.Samples) > 0 && len(c.recent) <= len(in.Disk.Samples) {
		c.began = in.Disk.Samples[0].End
	}
	if len(c.recent) < cpuFewest || c.limit.beyond(c.percent(), true) {
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
	return c.text(), len(c.recent) >= cpuFewest && c.now-c.began >= cpuSpan && c.limit.beyond(c.percent(), false)
}

func (c *cpu) relieved() (string, bool) {
	return c.text(), c.now-c.lastBad >= c.track.patience(OK, cpuSpan, c.now)
}

func (c *cpu) text() string {
	return fmt.Sprintf("CPU starvation contaminated %d of the last %s, limit %.0f %%",
		c.contaminated(), plural(len(c.recent), "sample"), c.limit.Enter)
}

func (c *cpu) report(v *Assessment) {
	v.Figures.Contaminated, v.Figures.LeftOut, v.Figures.Samples = c.percent(), c.contaminated(), len(c.recent)
}
