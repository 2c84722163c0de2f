// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"time"

	"github.com/quorumd/quorumd/health"
)

const (
	// warmUp is how long the cluster runs before anything is counted, so that the judges' windows are full.
	warmUp = 40 * time.Minute
	// comeBack is how long the run continues after the measured time, so that every counted transfer can be judged.
	comeBack = transferSpan + round
)

// outcome is what happened in one run of a scenario.
type outcome struct {
	scenario  *scenario
	seed      int
	measured  time.Duration // measured time of each host, without the warm-up
	hosts     int
	detected  time.Duration // time from the beginning of the fault to its detection; -1: not detected
	limit     time.Duration // time within which the fault had to be detected
	code      health.Code
	transfers []judged
	replaced  []replacement
	writes    int            // number of writes of host records
	wrote     map[string]int // how many times each part of the host records had changed
	looks     int
}

// judged is a leadership transfer that was judged right or false.
type judged struct {
	at      time.Duration // time since the beginning of the measured time
	isFalse bool
	text    string
}

// play runs a scenario with a seed. A scenario without a fault runs for healthyFor.
func play(s *scenario, seed int, healthyFor time.Duration, lives *pasts) (outcome, error) {
	c, err := s.build(seed, lives)
	if err != nil {
		return outcome{}, err
	}
	out := outcome{scenario: s, seed: seed, hosts: len(c.hosts), detected: -1, wrote: map[string]int{}}
	c.run(c.now+warmUp, nil)
	begin := c.now
	c.transfers, c.watched, c.replaced, c.looks = nil, nil, nil, 0
	for _, h := range c.hosts {
		h.writes, h.wrote = 0, map[string]int{}
	}
	out.measured = healthyFor
	victim := c.hosts[0]
	if s.lasts > 0 {
		out.measured = s.lasts
		out.limit = s.limit(victim)
		begin += time.Duration(c.rng.Float64() * float64(time.Minute))
		if c.leader != 0 {
			c.lead(0, c.now-time.Hour)
		}
		for _, i := range s.on {
			c.hosts[i].disk.fault = s.fault.activate(begin, c.rng)
		}
	}
	c.run(begin+out.measured, func(now time.Duration) {
		switch {
		case out.detected >= 0 || len(s.on) == 0:
		case victim.unfitAt >= begin:
			out.detected, out.code = victim.unfitAt-begin, victim.state.Code
		case c.leader != 0: // leadership has moved because of a finding from before the fault
			out.detected, out.code = now-begin, victim.state.Code
		}
	})
	out.looks = c.looks
	for _, h := range c.hosts {
		out.writes += h.writes
		for part, n := range h.wrote {
			out.wrote[part] += n
		}
	}
	counted := len(c.transfers)
	out.replaced = c.replaced
	c.run(begin+out.measured+comeBack, nil)
	for _, t := range c.transfers[:counted] {
		out.transfers = append(out.transfers, judged{t.at - begin, t.isFalse(), t.text})
	}
	return out, nil
}

// limit returns how soon the fault must be found. On a host with regular slow spells, a fault differs from such a spell
// only in that it lasts longer.
func (s *scenario) limit(h *host) time.Duration {
	limit := s.within
	if limit == 0 {
		return 0
	}
	for _, sp := range h.disk.spells {
		if !sp.random && sp.every <= 24*time.Hour {
			limit = max(limit, sp.lasts*3/2+time.Minute)
		}
	}
	return limit
}
