// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package health

import (
	"testing"
	"time"
)

func wellDiscovery() DiscoveryReading { return DiscoveryReading{Asked: true, Endpoints: 3, Members: 3} }

func discoveryEdges() []edge {
	set := func(d DiscoveryReading, lasting time.Duration) func(*bench) {
		return func(b *bench) { b.discovery = d; b.each(lasting, quiet) }
	}
	then := func(first, second func(*bench)) func(*bench) {
		return func(b *bench) { first(b); second(b) }
	}
	short := wellDiscovery()
	short.Endpoints = 2
	return []edge{
		{
			"there is no answer that names all members",
			then(set(wellDiscovery(), time.Minute), set(short, discoveryBadFor-time.Second)), set(short, time.Second),
		},
		{
			"every member is named",
			then(set(short, time.Minute), set(wellDiscovery(), discoveryWellFor-time.Second)),
			set(wellDiscovery(), time.Second),
		},
	}
}

func TestAnAnswerThatFailsOrShrinksIsToldAndGatesNothing(t *testing.T) {
	t.Parallel()
	for want, d := range map[string]DiscoveryReading{
		"it names 2 endpoints, and the cluster has 3 members": {Asked: true, Endpoints: 2, Members: 3},
		"the look takes too long":                             {Asked: true, Failed: "the look takes too long"},
		"":                                                    {Asked: true, Endpoints: 4, Members: 3},
	} {
		b := newBench(t, DefaultThresholds())
		b.pass(time.Minute, ms)
		b.discovery = d
		b.pass(2*discoveryBadFor, ms)
		if got := b.found(DiscoveryFaulty); got != want {
			t.Errorf("of %+v it finds %q, want %q", d, got, want)
		}
	}
	for _, c := range Checks(DefaultThresholds()) {
		if c.Name == "discovery" && c.Gates != Nothing {
			t.Errorf("it gates %v", c.Gates)
		}
	}
}
