// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/quorumd/quorumd/agent/diskrecord"
	"github.com/quorumd/quorumd/health"
)

const (
	day = 24 * time.Hour
	// pastDays is for how many days a cluster is simulated before a run begins, so that its judges can learn.
	pastDays = 8
)

// source returns a random source that depends only on the name, the number and the part.
func source(name string, number, part int) *rand.Rand {
	h := fnv.New64a()
	_, _ = h.Write([]byte(name))
	return rand.New(rand.NewPCG(h.Sum64(), uint64(number)<<20|uint64(part)))
}

// kind returns a key for the storage and the spells of a scenario's hosts.
func (s *scenario) kind() string {
	parts := append([]string{}, s.hosts...)
	for _, sp := range s.spells {
		parts = append(parts, fmt.Sprint(sp.name, sp.every, sp.from, sp.to, sp.low, sp.high))
	}
	return strings.Join(parts, " ")
}

// build returns the cluster of a scenario at a random time of day. Its judges have learned from a simulated past,
// unless s.young is true.
func (s *scenario) build(seed int, lives *pasts) (*cluster, error) {
	rng := source(s.name, seed, 0)
	at := (1+pastDays)*day + time.Duration(rng.IntN(24*60))*time.Minute
	c, err := s.buildAt(at, seed, seed%lives.groups, rng, lives.by)
	if err != nil || s.young {
		return c, err
	}
	past, err := lives.of(s, seed%lives.groups)
	if err != nil {
		return nil, err
	}
	return c, c.remember(past)
}

// buildAt returns a cluster for the scenario that starts at the given time. group selects one of the clusters with the
// same storage and spells.
func (s *scenario) buildAt(at time.Duration, seed, group int, rng *rand.Rand, by newJudge) (*cluster, error) {
	c := &cluster{limits: limits(), make: by, rng: rng, skips: quietRounds, now: at}
	for i, name := range s.hosts {
		h := &host{
			name: hostName(i), index: i, family: storage(name), began: at, wrote: map[string]int{},
			phase: round * time.Duration(i) / time.Duration(len(s.hosts)),
		}
		h.limits = h.family.thresholds()
		if err := s.equip(c, h, seed, group); err != nil {
			return nil, err
		}
		c.hosts = append(c.hosts, h)
	}
	generation := 0
	c.renew = func(h *host, _ time.Duration) {
		generation++
		if err := s.equip(c, h, seed, group+1000*generation); err != nil {
			panic(err) // impossible: a judge with the same limits was created before
		}
	}
	return c, nil
}

// equip provides a host with a disk, its spells, and a judge.
func (s *scenario) equip(c *cluster, h *host, seed, group int) error {
	const shared, apart = 50, 100
	part := apart * (h.index + 1)
	kind := s.kind()
	var own []*spells
	for k, sp := range s.spells {
		habit, rng := source(kind, group, part+k), source(s.name, seed, part+k)
		if sp.shared {
			habit, rng = source(kind, group, shared+k), source(s.name, seed, shared+k)
		}
		own = append(own, newSpells(sp, habit, rng))
	}
	habit, rng := source(kind, group, part+apart-1), source(s.name, seed, part+apart-1)
	if f := h.family; f.hiccups > 0 {
		own = append(own, newSpells(spell{
			name: "hiccup", every: time.Duration(float64(day) / f.hiccups), random: true,
			from: 2 * time.Second, to: 4 * time.Second, low: 5, high: 40,
		}, habit, rng))
	}
	var err error
	if h.judge, err = c.make(h.limits); err != nil {
		return err
	}
	h.disk = newDisk(h.family, own, habit, rng, c.now)
	h.state, h.unfitAt, h.unfitNowAt, h.busyUntil, h.sign, h.noted = health.Assessment{}, 0, 0, 0, 0, 0
	h.seen, h.publisher, h.witness, h.input = seen{}, diskrecord.New(), witness{}, health.Input{}
	return nil
}
