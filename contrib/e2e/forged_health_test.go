// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

//go:build nightly

package e2e

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/quorumd/quorumd/agent/policy"
)

// TestAForgedHostRecordRemovesNoHealthyVoter simulates an attacker with write access to quorumd's keys. For longer than
// the grace period the attacker forges the record of a healthy voter, while a spare is ready to replace it.
func TestAForgedHostRecordRemovesNoHealthyVoter(t *testing.T) {
	t.Parallel()
	for _, state := range []string{"SLOW", "STALLED", "FAILED"} {
		t.Run(state, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, worldOptions{hosts: 4, voters: 3, set: map[string]string{
				"repair.unhealthy": "30s", "timing.interval": "1s", "timing.lockTTL": "15s",
			}})
			w.start(w.hosts[:3]...)
			w.bootstrap()
			w.within(2*formation, "there are 3 voters", func() bool { return w.has(3, 0) })
			n1, n3, n4 := w.hosts[0], w.hosts[2], w.hosts[3]
			w.start(n4)
			w.within(2*formation, "n4 is ready", n4.healthy)
			w.lead(n1)
			untouched, member := n3.expectSameProcess(), w.memberID(n3)
			key := w.keys().Host("host-" + n3.Options.Name)
			forge := func() { // overwrites what n3 has published
				value, ok := w.get(key)
				var r map[string]any
				if !ok || value == "" || json.Unmarshal([]byte(value), &r) != nil {
					return
				}
				r["health"], r["healthText"], r["recovers"], r["spares"] = state, "forged", false, nil
				text, err := json.Marshal(r)
				must(t, err)
				n1.write(key, string(text))
			}
			// n1 suspects n3 only after the grace period, and after the 90 s within which a host may report its
			// recovery.
			w.within(10*time.Minute, "n1 suspects n3 by the forged record alone", func() bool {
				forge()
				return n1.hasReason(policy.VoterSuspect)
			})
			const rounds = 60
			before := n1.statusNow().Loop.Rounds
			w.within(10*time.Minute, "n1 has decided many times since", func() bool {
				forge()
				s, ok := n1.status()
				return ok && s.Loop.Rounds >= before+rounds
			})
			if listed, learner := w.is(n3); !listed || learner || w.memberID(n3) != member {
				t.Error("a healthy voter was removed for a forged record")
			}
			untouched("its record was forged")
		})
	}
}
