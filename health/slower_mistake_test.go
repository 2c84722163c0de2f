// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package health

import (
	"testing"
	"time"
)

// comparisonMistake is a mistake that a judge could make. A judge with it must break the named promise; otherwise the
// test of that promise proves nothing.
type comparisonMistake struct {
	name, promise string
	sees          func(*Input)
	learns        func(*comparison)
}

// comparisonPromises returns what the comparison promises. Each reports whether it holds.
func comparisonPromises() map[string]func(b *bench) bool {
	return map[string]func(b *bench) bool{
		"one record hides no slow disk": func(b *bench) bool {
			b.peers.All[0].P50, b.peers.All[0].P90 = time.Second, time.Second
			_, found := b.untilSlower(time.Minute, 8*ms)
			return found
		},
		"one other voter is not enough": func(b *bench) bool {
			b.peers.All = b.peers.All[:1]
			_, found := b.untilSlower(10*time.Minute, 8*ms)
			return !found
		},
		"a load that all voters share causes no finding": func(b *bench) bool {
			b.peers = peersAt(8*ms, 0)
			_, found := b.untilSlower(10*time.Minute, 8*ms)
			return !found
		},
		"a disk that has always been slower causes no finding": func(b *bench) bool {
			b.j.UseHistory(historyOf(8*ms, 0))
			_, found := b.untilSlower(10*time.Minute, 8*ms)
			return !found
		},
		"a fault never becomes a habit": func(b *bench) bool {
			for range 4 {
				b.each(10*time.Minute, 8*ms)
				b.each(50*time.Minute, ms)
			}
			_, found := b.untilSlower(3*time.Minute, 8*ms)
			return found
		},
	}
}

func comparisonMistakes() []comparisonMistake {
	return []comparisonMistake{
		{
			name: "relies on one peer", promise: "one record hides no slow disk",
			sees: func(in *Input) {
				if len(in.Peers.All) == 2 {
					in.Peers.All = []PeerWrites{in.Peers.All[0], in.Peers.All[0]}
				}
			},
		},
		{
			name: "counts one peer twice", promise: "one other voter is not enough",
			sees: func(in *Input) {
				if len(in.Peers.All) == 1 {
					in.Peers.All = []PeerWrites{in.Peers.All[0], in.Peers.All[0]}
				}
			},
		},
		{
			name: "ignores the peers", promise: "a load that all voters share causes no finding",
			sees: func(in *Input) { in.Peers = peersAt(ms, 0) },
		},
		{
			name: "ignores the past", promise: "a disk that has always been slower causes no finding",
			learns: func(c *comparison) { c.usual = ms },
		},
		{
			name: "learns during a finding", promise: "a fault never becomes a habit",
			learns: func(c *comparison) {
				for _, r := range c.climbs {
					if r.since != 0 {
						c.history.AddSpell(r.began, r.rung, c.now-r.since)
					}
				}
			},
		},
	}
}

func TestEveryMistakeOfAComparisonBreaksItsPromise(t *testing.T) {
	t.Parallel()
	for promise, holds := range comparisonPromises() {
		if !holds(compared(t, ms)) {
			t.Errorf("broken without a mistake: %s", promise)
		}
	}
	for _, m := range comparisonMistakes() {
		b := compared(t, ms)
		b.mistake = m
		if comparisonPromises()[m.promise](b) {
			t.Errorf("a judge that %s breaks no promise; want %s", m.name, m.promise)
		}
	}
}
