// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/quorumd/quorumd/agent/config"
)

// One voter's host is disconnected and reconnected repeatedly, each time for 1 to 15 minutes, sometimes for longer than
// the grace period of dead voters.
func TestAFlappingVoterIsReplacedAtMostOnceInAnHour(t *testing.T) {
	t.Parallel()
	replaced := 0
	for seed := range uint64(3) {
		var before counts
		r := run(t, Options{
			Seed: seed, Faulty: time.Hour,
			plan: func(p *plan) {
				p.Hosts, p.Voters, p.Standbys, p.Fresh = 5, 3, int(seed%2), false
				p.Timing, p.Dead, p.PerDay = "{}", 10*time.Minute, 2
			},
			trouble: func(w *world, length time.Duration) {
				before = w.counts
				w.flap(w.hosts[seed%3], length)
			},
		})
		t.Logf("seed %d: %d membership changes, %d voters replaced, %d elections", seed,
			r.Changes-before.Changes, r.Replaced-before.Replaced, r.Elections-before.Elections)
		if r.Breach != nil {
			t.Errorf("seed %d: %v", seed, r.Breach)
		}
		once := r.Replaced - before.Replaced
		replaced += once
		// The voter is removed. Then either another host is added and promoted, or the standby is promoted and another
		// host is added. If the voter has returned as a standby, it may be removed again, and another host may be
		// added.
		if changes := r.Changes - before.Changes; once > 1 || changes > 5 {
			t.Errorf("seed %d: %d membership changes, %d voters replaced", seed, changes, once)
		}
	}
	if replaced == 0 {
		t.Error("no voter was replaced: the test proves nothing")
	}
}

// Two hosts are isolated in turn, each for so long that the other replaces it. No third host is available as a
// replacement.
func TestTwoFlappingVotersReplaceEachOtherEverMoreRarely(t *testing.T) {
	t.Parallel()
	const rounds = 12
	flapBoth := func(clean time.Duration) (replaced []int, changes int) {
		var before counts
		r := run(t, Options{Seed: 2, plan: twoPlaces(clean), trouble: func(w *world, _ time.Duration) {
			before = w.counts
			for i := range rounds {
				w.away(w.hosts[i%2], 15*time.Minute)
				w.mu.Lock()
				replaced = append(replaced, w.counts.Replaced-before.Replaced)
				w.mu.Unlock()
			}
		}})
		if r.Breach != nil {
			t.Errorf("with cleanFor %s: %v", clean, r.Breach)
		}
		return replaced, r.Changes - before.Changes
	}
	patient, fewer := flapBoth(10 * time.Minute)
	eager, more := flapBoth(0)
	t.Logf("with cleanFor 10m: %v replaced, %d membership changes; with 0s: %v, %d", patient, fewer, eager, more)
	first, all := patient[rounds/2-1], patient[rounds-1]
	if first == 0 || all-first >= first {
		t.Errorf("%d replaced in the first half, and %d in the second", first, all-first)
	}
	if fewer >= more || all >= eager[rounds-1] {
		t.Errorf("%d replaced, and %d with cleanFor 0s; %d and %d membership changes", all, eager[rounds-1], fewer,
			more)
	}
}

func TestAnEjectedHostThatRejoinsAtOnceIsFound(t *testing.T) {
	t.Parallel()
	r := run(t, Options{
		Seed: 2, plan: twoPlaces(30 * time.Minute),
		Mistake: Mistake{config: func(c *config.Config) { c.Repair.CleanFor = 0 }},
		trouble: func(w *world, _ time.Duration) { w.away(w.hosts[0], 15*time.Minute) },
	})
	if r.Breach == nil || !strings.Contains(r.Breach.Text, "after ejection number") {
		t.Errorf("breach: %v", r.Breach)
	}
}

// The agent that removes a voter is frozen until after the voter has returned: either before the agent sends the
// removal, or while it waits for the answer.
func TestAnAgentFrozenDuringARemovalDoesNoHarm(t *testing.T) {
	t.Parallel()
	for _, call := range []string{"remove learner", "remove member"} {
		if !slices.Contains(frozenCalls(), call) {
			t.Errorf("no fault freezes an agent in %q", call)
		}
	}
	for _, before := range []bool{true, false} {
		frozen := false
		opt := Options{Seed: 2, plan: twoPlaces(10 * time.Minute), trouble: func(w *world, _ time.Duration) {
			w.mu.Lock()
			for _, h := range w.hosts {
				h.trap = trap{call: "remove member", before: before, length: 10 * time.Minute}
			}
			w.mu.Unlock()
			w.away(w.hosts[0], 10*time.Minute)
		}}
		opt.Story = func(line string) { frozen = frozen || strings.Contains(line, "at remove member") }
		if r := run(t, opt); r.Breach != nil || !frozen {
			t.Errorf("frozen before the call: %t; frozen: %t; breach: %v", before, frozen, r.Breach)
		}
	}
}

// twoPlaces returns a plan with three voters, one standby and no spare.
func twoPlaces(clean time.Duration) func(p *plan) {
	return func(p *plan) {
		p.Hosts, p.Voters, p.Standbys, p.Fresh, p.Load = 4, 3, 1, false, 0
		p.Timing, p.Dead, p.PerDay, p.CleanFor = timingSection(19), 6*time.Minute, 9, clean
	}
}

// away isolates a host for a while, then reconnects it and waits as long again.
func (w *world) away(h *host, d time.Duration) {
	for _, by := range []int{1, -1} {
		w.mu.Lock()
		for _, o := range w.hosts {
			w.cut(o, h, by)
			w.cut(h, o, by)
		}
		w.networkChanged()
		w.event(h, eventFault, 7, "its network is cut: %v", by > 0)
		w.mu.Unlock()
		w.wait(w.moment(d, laneFaults))
	}
}

// flap isolates a host and reconnects it repeatedly.
func (w *world) flap(h *host, length time.Duration) {
	w.mu.Lock()
	first := w.etcd.memberOn(h)
	w.mu.Unlock()
	for end, by := w.now()+length, 1; w.now() < end || by < 0; by = -by {
		w.mu.Lock()
		for _, o := range w.hosts {
			w.cut(o, h, by)
			w.cut(h, o, by)
		}
		w.networkChanged()
		w.event(h, eventFault, 7, "its network is cut: %v (of member %x)", by > 0, first.id)
		d := between(w.draw(70), time.Minute, 15*time.Minute)
		w.mu.Unlock()
		w.wait(w.moment(d, laneFaults))
	}
}
