// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"testing"
	"time"

	"github.com/quorumd/quorumd/disk"
)

// durations returns how long each direct write to a host's disk takes, over a day.
func durations(f family, own []*spells, fail fault) []time.Duration {
	rng := source(f.name, 1, 1)
	d := newDisk(f, own, source(f.name, 1, 2), rng, 0)
	d.fault = fail.activate(0, rng)
	var all []time.Duration
	for at := time.Duration(0); at < 24*time.Hour; at += time.Minute {
		d.advance(at)
		for _, s := range d.samples {
			if s.Lane == disk.LaneDirect {
				all = append(all, s.Latency)
			}
		}
		d.forget()
	}
	return all
}

func TestEachFamilyHasThePromisedMedianAndP99(t *testing.T) {
	t.Parallel()
	const us = time.Microsecond
	for name, want := range map[string]struct{ median, p99 time.Duration }{
		"plp":        {120 * us, 250 * us},
		"nvme-fast":  {890 * us, 2100 * us},
		"nvme":       {1200 * us, 3200 * us},
		"sata":       {2400 * us, 5200 * us},
		"hdd":        {14_000 * us, 34_000 * us},
		"hdd-limits": {14_000 * us, 34_000 * us},
		"bbu":        {100 * us, 215 * us},
		"virtual":    {3200 * us, 11_000 * us},
	} {
		all := durations(storage(name), nil, fault{})
		if m := quantile(all, 0.5); apart(m, want.median, 0.2) {
			t.Errorf("%s: median %s, want %s", name, m, want.median)
		}
		if p := quantile(all, 0.99); apart(p, want.p99, 0.25) {
			t.Errorf("%s: p99 %s, want %s", name, p, want.p99)
		}
	}
	if len(families()) != 8 {
		t.Errorf("there are %d families: add the new one above", len(families()))
	}
}

// apart reports whether two durations differ by more than the given share.
func apart(a, b time.Duration, share float64) bool {
	return float64(a) > float64(b)*(1+share) || float64(a) < float64(b)*(1-share)
}

func TestAFaultChangesWritesAsConfigured(t *testing.T) {
	t.Parallel()
	f := storage("nvme")
	well := durations(f, nil, fault{})
	for name, c := range map[string]struct {
		fault fault
		share float64 // the quantile
		want  time.Duration
	}{
		"a factor":  {fault{factor: 8}, 0.5, 8 * quantile(well, 0.5)},
		"an addend": {fault{plus: 30 * time.Millisecond}, 0.5, 30*time.Millisecond + quantile(well, 0.5)},
		"tails": {
			fault{tails: 0.5, tailFrom: 200 * time.Millisecond, tailTo: 202 * time.Millisecond},
			0.8, 201 * time.Millisecond,
		},
		"half a day": {fault{factor: 100, lasts: 12 * time.Hour, every: 24 * time.Hour}, 0.2, quantile(well, 0.4)},
	} {
		if got := quantile(durations(f, nil, c.fault), c.share); apart(got, c.want, 0.2) {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
	}
}

func TestAStallHoldsAWriteBackUntilItEnds(t *testing.T) {
	t.Parallel()
	f := fault{stall: 800 * time.Millisecond, every: 10 * time.Minute}
	a := f.activate(time.Hour, source("stall", 1, 1))
	for at, want := range map[time.Duration]time.Duration{
		time.Hour - 1: 0, time.Hour: 800 * time.Millisecond, time.Hour + 500*time.Millisecond: 300 * time.Millisecond,
		time.Hour + time.Second: 0, time.Hour + 10*time.Minute: 800 * time.Millisecond,
	} {
		if got, _ := a.change(at, 0, nil); got != want {
			t.Errorf("after %s a write takes %s longer, want %s", at, got, want)
		}
	}
}

func TestPeriodicSpellsKeepTheirTimeAndLength(t *testing.T) {
	t.Parallel()
	for seed := range 20 {
		s := newSpells(batch(), source("batch", seed, 1), source("batch", seed, 2))
		slow, begun := 0, 0
		before := false
		const seconds = 24 * 3600
		for i := range seconds {
			is := s.at(24*time.Hour+time.Duration(i)*time.Second) > 1
			if is {
				slow++
			}
			if is && !before {
				begun++
			}
			before = is
		}
		if begun < 23 || begun > 25 || slow < 24*100 || slow > 25*280 {
			t.Errorf("seed %d: %d batches in a day, %d s in total", seed, begun, slow)
		}
	}
}

func TestSharedSpellsHappenOnAllHostsAtOnce(t *testing.T) {
	t.Parallel()
	s := scenario{name: "test", hosts: three("nvme"), spells: []spell{bursts()}}
	c, err := s.buildAt(day, 1, 1, source(s.name, 1, 0), realJudge)
	if err != nil {
		t.Fatal(err)
	}
	bursts := 0
	for i := range 48 * 3600 {
		at := c.now + time.Duration(i)*time.Second
		first := c.hosts[0].disk.spells[0].at(at)
		for _, h := range c.hosts[1:] {
			if other := h.disk.spells[0].at(at); other != first {
				t.Fatalf("at %s: factor %g on the first host and %g on a different one", at, first, other)
			}
		}
		if first > 1 {
			bursts++
		}
	}
	if bursts == 0 {
		t.Error("no burst in two days")
	}
}
