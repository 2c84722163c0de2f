// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"hash/fnv"
	"math/rand/v2"
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
	writes    int // of host records
	looks     int
}

// judged is a transfer with its judgement.
type judged struct {
	at      time.Duration // since the measured time began
	isFalse bool
	text    string
}

// source returns the random numbers of one part of one run.
func source(name string, seed, part int) *rand.Rand {
	h := fnv.New64a()
	_, _ = h.Write([]byte(name))
	return rand.New(rand.NewPCG(h.Sum64(), uint64(seed)<<16|uint64(part)))
}

// play runs a scenario with a seed. healthyFor is how long a healthy cluster is observed.
func play(s *scenario, seed int, healthyFor time.Duration, make newJudge) (outcome, error) {
	c, err := s.build(seed, make)
	if err != nil {
		return outcome{}, err
	}
	out := outcome{scenario: s, seed: seed, hosts: len(c.hosts), detected: -1}
	c.run(c.now+warmUp, nil)
	begin := c.now
	c.transfers, c.watched, c.replaced, c.looks = nil, nil, nil, 0
	for _, h := range c.hosts {
		h.writes = 0
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

// build returns the cluster of a scenario. It begins at some time of a day.
func (s *scenario) build(seed int, make newJudge) (*cluster, error) {
	c := &cluster{limits: limits(), make: make, skips: quietRounds, rng: source(s.name, seed, 0)}
	c.now = 24*time.Hour + time.Duration(c.rng.IntN(24*60))*time.Minute
	generation := 0
	for i, name := range s.hosts {
		h := &host{
			name: hostName(i), index: i, family: storage(name), began: c.now,
			phase: round * time.Duration(i) / time.Duration(len(s.hosts)), rng: source(s.name, seed, 100+i),
		}
		h.limits = h.family.thresholds()
		if err := s.equip(c, h, seed, generation); err != nil {
			return nil, err
		}
		c.hosts = append(c.hosts, h)
	}
	c.leader = 0
	c.renew = func(h *host, now time.Duration) {
		generation++
		h.rng = source(s.name, seed, 1000*generation+h.index)
		if err := s.equip(c, h, seed, generation); err != nil {
			panic(err) // the first judge was made with the same limits
		}
	}
	return c, nil
}

// equip gives a host a disk with its spells, and a judge.
func (s *scenario) equip(c *cluster, h *host, seed, generation int) error {
	var own []*spells
	for k, sp := range s.spells {
		rng := source(s.name, seed, 10_000*(generation+1)+100*k+h.index)
		if sp.shared {
			rng = source(s.name, seed, 50+k)
		}
		own = append(own, newSpells(sp, rng))
	}
	if f := h.family; f.hiccups > 0 {
		own = append(own, newSpells(spell{
			name: "hiccup", every: time.Duration(float64(24*time.Hour) / f.hiccups), random: true,
			from: 2 * time.Second, to: 4 * time.Second, low: 5, high: 40,
		}, h.rng))
	}
	var err error
	if h.judge, err = c.make(h.limits); err != nil {
		return err
	}
	h.disk = newDisk(h.family, own, h.rng, c.now)
	h.state, h.unfitAt, h.busyUntil, h.sign, h.noted = health.Assessment{}, 0, 0, 0, 0
	h.seen, h.publisher, h.witness, h.input = seen{}, publisher{}, witness{}, health.Input{}
	return nil
}
