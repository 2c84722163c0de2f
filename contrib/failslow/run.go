// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"time"

	"github.com/quorumd/quorumd/health"
)

const (
	// warmUp fills the judges' windows before anything is counted.
	warmUp = 40 * time.Minute
	// comeBack is how long after the measured time open transfers are watched.
	comeBack = transferSpan + round
)

// outcome is what happened in one run of a scenario.
type outcome struct {
	scenario  *scenario
	seed      int
	measured  time.Duration // of one host, without the warm-up
	hosts     int
	detected  time.Duration // after the beginning of the fault; -1: never
	limit     time.Duration // within which it should have been
	code      health.Code
	transfers []judged
	replaced  []replacement
	writes    int            // of host records
	wrote     map[string]int // and how often each part of them had changed
	looks     int
}

// judged is a transfer with its judgement.
type judged struct {
	at      time.Duration // since the measured time began
	isFalse bool
	text    string
}

// play runs a scenario with a seed. healthyFor is how long a healthy cluster is observed.
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
		case c.leader != 0: // a finding from before the fault has now moved the leadership
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

// limit returns how soon the fault must be found. On a host with habitual slow spells, longer than usual is what is
// wrong.
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
