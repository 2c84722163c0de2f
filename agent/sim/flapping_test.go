// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"testing"
	"time"
)

// The way to one voter's host is cut and whole in turn, each for a minute to a quarter of an hour: at times for longer
// than dead voters are waited for.
func TestAVoterThatComesAndGoesForAnHourIsReplacedOnceAtMost(t *testing.T) {
	t.Parallel()
	replaced := 0
	for seed := range uint64(3) {
		var before counts
		r := run(t, Options{
			Seed: seed, Faulty: time.Hour,
			plan: func(p *plan) {
				p.Hosts, p.Voters, p.Standbys, p.Fresh = 5, 3, int(seed%2), false
				p.Clocks, p.Dead, p.PerDay = "{}", 10*time.Minute, 2
			},
			trouble: func(w *world, length time.Duration) {
				before = w.counts
				w.flap(w.hosts[seed%3], length)
			},
		})
		t.Logf("seed %d: %d changes of the membership, %d voters replaced, %d elections", seed,
			r.Changes-before.Changes, r.Replaced-before.Replaced, r.Elections-before.Elections)
		if r.Breach != nil {
			t.Errorf("seed %d: %v", seed, r.Breach)
		}
		once := r.Replaced - before.Replaced
		replaced += once
		// It is removed, and another added and promoted, or the standby promoted and another added; once it is back and
		// the standby itself, it is let go, and another added.
		if changes := r.Changes - before.Changes; once > 1 || changes > 5 {
			t.Errorf("seed %d: %d changes of the membership, %d voters replaced", seed, changes, once)
		}
	}
	if replaced == 0 {
		t.Error("nobody was replaced: this test has shown nothing")
	}
}

// flap cuts a host off and mends that, again and again.
func (w *world) flap(h *host, length time.Duration) {
	w.mu.Lock()
	first := w.etcd.on(h)
	w.mu.Unlock()
	for end, by := w.now()+length, 1; w.now() < end || by < 0; by = -by {
		w.mu.Lock()
		for _, o := range w.hosts {
			w.cut(o, h, by)
			w.cut(h, o, by)
		}
		w.noticed()
		w.happen(h, happenedFault, 7, "its network is cut: %v (of member %x)", by > 0, first.id)
		d := between(w.draw(70), time.Minute, 15*time.Minute)
		w.mu.Unlock()
		w.wait(w.moment(d, laneFaults))
	}
}
