// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package health

import (
	"testing"
	"time"
)

func wellDiscovery() DiscoveryReading {
	return DiscoveryReading{Set: true, Asked: true, Endpoints: 3, Members: 3}
}

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
			"discovery fails or does not return all members",
			then(set(wellDiscovery(), time.Minute), set(short, discoveryBadFor-time.Second)), set(short, time.Second),
		},
		{
			"discovery returns all members, or is not configured",
			then(set(short, time.Minute), set(wellDiscovery(), discoveryWellFor-time.Second)),
			set(wellDiscovery(), time.Second),
		},
	}
}

func TestAFailedOrIncompleteDiscoveryIsFoundAndGatesNothing(t *testing.T) {
	t.Parallel()
	for want, d := range map[string]DiscoveryReading{
		"discovery returned 2 endpoints for 3 members": {Endpoints: 2, Members: 3},
		"discovery timed out":                          {Failed: "discovery timed out"},
		"":                                             {Endpoints: 4, Members: 3},
	} {
		d.Set, d.Asked = true, true
		b := newBench(t, DefaultThresholds())
		b.pass(time.Minute, ms)
		b.discovery = d
		b.pass(2*discoveryBadFor, ms)
		if got := b.found(DiscoveryFaulty); got != want {
			t.Errorf("%+v: found %q, want %q", d, got, want)
		}
	}
	for _, c := range Checks(DefaultThresholds()) {
		if c.Name == "discovery" && c.Gates != Nothing {
			t.Errorf("it gates %v", c.Gates)
		}
	}
}

func TestUnconfiguredDiscoveryIsNoFinding(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		d    DiscoveryReading
		want string
	}{
		{DiscoveryReading{Members: 3}, ""},
		{DiscoveryReading{Set: true, Members: 3}, "cluster.discovery has not run yet"},
		{wellDiscovery(), ""},
	} {
		b := newBench(t, DefaultThresholds())
		b.discovery = c.d
		b.pass(2*discoveryBadFor, ms)
		got := ""
		for _, a := range b.result.NotAvailable {
			if a.Check == "discovery" {
				got = a.Why
			}
		}
		if got != c.want || b.found(DiscoveryFaulty) != "" {
			t.Errorf("%+v: text %q, found %q", c.d, got, b.found(DiscoveryFaulty))
		}
	}
}
