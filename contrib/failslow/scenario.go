// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"slices"
	"time"
)

// scenario is a cluster, with or without a fault. Scenarios and their parameters are fixed, so that results stay
// comparable: add new ones, but do not change existing ones.
type scenario struct {
	name  string
	about string
	// hosts are the storage families of the voters. The first one leads when a fault begins.
	hosts  []string
	spells []spell
	fault  fault
	// on lists the hosts with the fault, by index.
	on []int
	// lasts is how long the fault is observed; 0: no fault, and the option -hours applies.
	lasts time.Duration
	// within is how soon the first host must have a finding that rules out leading; 0: no such finding is required.
	within time.Duration
	// young means that the hosts have learned nothing about their disks yet.
	young bool
	// replaces means that it is right to replace the faulty host.
	replaces bool
	// goal is the group in which the scenario is counted.
	goal goal
}

// goal is a group of scenarios that share a requirement.
type goal string

const (
	goalSteep   goal = "sustained, 8x or more and 1 ms or more"
	goalMedium  goal = "sustained, 3x or more and 1 ms or more"
	goalTails   goal = "tails and periodic stalls"
	goalHealing goal = "heals by itself"
	goalCommon  goal = "common cause"
	goalHealthy goal = "healthy"
	goalOther   goal = "other"
)

func three(family string) []string { return []string{family, family, family} }

func five(family string) []string { return append(three(family), family, family) }

// scenarios returns all scenarios.
func scenarios() []scenario {
	return append(faults(), healthy()...)
}

// faults returns the scenarios in which something is wrong.
func faults() []scenario {
	all := slices.Concat(sustained(), passing(), common())
	for i := range all {
		all[i].spells = append(all[i].spells, bursts())
	}
	return all
}

// sustained returns the lasting faults of one host, which must be found.
func sustained() []scenario {
	const ms, m, h = time.Millisecond, time.Minute, time.Hour
	one := []int{0}
	return []scenario{
		{
			name: "3x-sata", about: "3 x 2.4 ms", hosts: three("sata"), fault: fault{factor: 3}, on: one,
			lasts: 2 * h, within: 10 * m, goal: goalMedium,
		},
		{
			name: "3x-sata-young", about: "3 x 2.4 ms on hosts that have learned nothing yet", hosts: three("sata"),
			fault: fault{factor: 3}, on: one, lasts: 2 * h, within: 12 * m, goal: goalOther, young: true,
		},
		{
			name: "3x-sata-batch", about: "3 x 2.4 ms on hosts with an hourly batch", hosts: three("sata"),
			spells: []spell{batch()}, fault: fault{factor: 3}, on: one,
			lasts: 2 * h, within: 10 * m, goal: goalMedium,
		},
		{
			name: "p99-12ms", about: "p99 12 ms, others 2 ms (6 x 0.9 ms)", hosts: three("nvme-fast"),
			fault: fault{factor: 6}, on: one, lasts: 2 * h, within: 10 * m, goal: goalMedium,
		},
		{
			name: "20x-plp", about: "20 x 0.12 ms", hosts: three("plp"), fault: fault{factor: 20}, on: one,
			lasts: 2 * h, within: m, goal: goalSteep,
		},
		{
			name: "bbu-gone", about: "0.1 to 6 ms: the controller's battery failed", hosts: three("bbu"),
			fault: fault{factor: 60}, on: one, lasts: 2 * h, within: m, goal: goalSteep,
		},
		{
			name: "8x-nvme", about: "8 x 1.2 ms", hosts: three("nvme"), fault: fault{factor: 8}, on: one,
			lasts: 2 * h, within: m, goal: goalSteep,
		},
		{
			name: "plus-30ms", about: "each write takes 30 ms longer", hosts: three("nvme"),
			fault: fault{plus: 30 * ms}, on: one, lasts: 2 * h, within: m, goal: goalSteep,
		},
		{
			name: "plus-150ms", about: "each write takes 150 ms longer", hosts: three("nvme"),
			fault: fault{plus: 150 * ms}, on: one, lasts: 2 * h, within: m, goal: goalSteep, replaces: true,
		},
		{
			name: "starved", about: "1.5 ms longer, 15 % spoiled by CPU starvation", hosts: three("plp"),
			fault: fault{plus: 1500 * time.Microsecond, starved: 0.15}, on: one,
			lasts: 2 * h, within: m, goal: goalSteep,
		},
		{
			name: "hdd-3x", about: "14 to 42 ms, limits set for the disk", hosts: three("hdd-limits"),
			fault: fault{factor: 3}, on: one, lasts: 2 * h, within: 10 * m, goal: goalMedium,
		},
		{
			name: "tails", about: "0.5 % of the writes take 50 to 500 ms", hosts: three("nvme"),
			fault: fault{tails: 0.005, tailFrom: 50 * ms, tailTo: 500 * ms}, on: one,
			lasts: 6 * h, within: 2 * h, goal: goalTails,
		},
		{
			name: "stalls", about: "0.8 s stall every 10 minutes", hosts: three("nvme"),
			fault: fault{stall: 800 * ms, every: 10 * m}, on: one,
			lasts: 12 * h, within: 2 * h, goal: goalTails,
		},
	}
}

// passing returns the faults of one host that come and go or do no harm.
func passing() []scenario {
	const ms, s, m, h = time.Millisecond, time.Second, time.Minute, time.Hour
	one := []int{0}
	return []scenario{
		{
			name: "neighbour", about: "20 times slower for 30 s of every 5 minutes", hosts: three("virtual"),
			fault: fault{factor: 20, lasts: 30 * s, every: 5 * m}, on: one, lasts: 12 * h, goal: goalHealing,
		},
		{
			name: "cache-full", about: "100 times slower for 20 minutes of every 6 hours", hosts: three("nvme"),
			fault: fault{factor: 100, lasts: 20 * m, every: 6 * h}, on: one, lasts: 24 * h, goal: goalHealing,
		},
		{
			name: "once", about: "150 ms longer for 5 to 10 minutes, once", hosts: three("nvme"),
			fault: fault{plus: 150 * ms, onceFrom: 5 * m, onceTo: 10 * m}, on: one, lasts: 2 * h,
			goal: goalHealing,
		},
		{
			name: "flapping", about: "150 ms longer for 15 of 60 minutes", hosts: three("nvme"),
			fault: fault{plus: 150 * ms, lasts: 15 * m, every: h}, on: one, lasts: 12 * h, goal: goalOther,
			replaces: true,
		},
		{
			name: "3x-plp", about: "3 x 0.12 ms, which does not matter", hosts: three("plp"),
			fault: fault{factor: 3}, on: one, lasts: 2 * h, goal: goalOther,
		},
	}
}

// common returns the faults that several hosts have at the same time.
func common() []scenario {
	const ms, h = time.Millisecond, time.Hour
	return []scenario{
		{
			name: "all-8x", about: "all voters 8 times slower at once: 1.2 to 9.6 ms", hosts: three("nvme"),
			fault: fault{factor: 8}, on: []int{0, 1, 2}, lasts: 2 * h, goal: goalCommon,
		},
		{
			name: "two-10x", about: "two of three voters 10 times slower: 2.4 to 24 ms", hosts: three("sata"),
			fault: fault{factor: 10}, on: []int{0, 1}, lasts: 2 * h, goal: goalCommon,
		},
		{
			name: "all-8x-hdd", about: "all voters 8 times slower at once: 14 to 112 ms", hosts: three("hdd"),
			fault: fault{factor: 8}, on: []int{0, 1, 2}, lasts: 2 * h, goal: goalCommon,
		},
		{
			name: "two-10x-hdd", about: "two of three voters 10 times slower: 14 to 140 ms", hosts: three("hdd"),
			fault: fault{factor: 10}, on: []int{0, 1}, lasts: 2 * h, goal: goalCommon,
		},
		{
			name: "all-150ms", about: "each write takes 150 ms longer on all voters at once", hosts: three("nvme"),
			fault: fault{plus: 150 * ms}, on: []int{0, 1, 2}, lasts: 2 * h, goal: goalCommon,
		},
	}
}

// healthy returns the clusters in which nothing is wrong.
func healthy() []scenario {
	var all []scenario
	for _, family := range []string{"plp", "nvme", "sata", "hdd-limits", "bbu", "virtual"} {
		all = append(all, scenario{
			name: "healthy-" + family, about: "nothing is wrong", hosts: three(family), spells: usual(),
			goal: goalHealthy,
		})
	}
	nightly := usual()
	nightly[0].low, nightly[0].high = 6, 10
	return append(all,
		scenario{
			name: "healthy-hdd", about: "default limits, nightly backup x 6 to 10", hosts: three("hdd"),
			spells: nightly, goal: goalHealthy,
		},
		scenario{
			name: "healthy-mixed", about: "different storage", hosts: []string{"plp", "sata", "virtual"},
			spells: usual(), goal: goalHealthy,
		},
		scenario{
			name: "healthy-batch", about: "an hourly batch", hosts: three("sata"),
			spells: append(usual(), batch()), goal: goalHealthy,
		},
		scenario{
			name: "healthy-young", about: "hosts that have learned nothing yet", hosts: three("nvme"), spells: usual(),
			goal: goalHealthy, young: true,
		},
		scenario{
			name: "healthy-five", about: "five voters", hosts: five("nvme"), spells: usual(), goal: goalHealthy,
		},
	)
}
