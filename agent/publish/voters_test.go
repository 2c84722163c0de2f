// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package publish

import (
	"testing"
	"time"

	"github.com/quorumd/quorumd/agent/cluster"
	"github.com/quorumd/quorumd/agent/config"
	"github.com/quorumd/quorumd/agent/policy"
	"github.com/quorumd/quorumd/agent/record"
	"github.com/quorumd/quorumd/agent/round"
)

// TestAListOfVotersIsCurrentOrNone checks that an old list is not returned: the caller writes every list as current, so
// the proxy could not see the list's age.
func TestAListOfVotersIsCurrentOrNone(t *testing.T) {
	t.Parallel()
	const blink = round.Blink * (2 + 1) * time.Second
	now := time.Hour
	p := New(Options{
		Config: config.Config{Timing: config.Timing{Interval: 2 * time.Second, CallTimeout: time.Second}},
		Now:    func() time.Duration { return now }, Wall: time.Now,
	}, record.KeysFor("test"), nil)
	look := func(reachable bool) {
		r := &round.Round{At: now}
		r.Membership.Members = []cluster.Member{{ID: 1, Name: "n1", ClientURLs: []string{"http://192.0.2.1:2379"}}}
		r.View.Cluster = policy.Cluster{Reachable: reachable, Members: []policy.Member{{ID: 1, Name: "n1", Live: true}}}
		p.Show(r)
	}
	expect := func(want bool, when string) {
		t.Helper()
		if l, ok := p.Voters(); ok != want {
			t.Errorf("%s: list returned %v, %+v; want %v", when, ok, l, want)
		}
	}
	expect(false, "before the first round")
	look(true)
	expect(true, "with a quorum")
	now += blink
	expect(true, "a few rounds later")
	now++
	expect(false, "with a loop that is stuck")
	look(true)
	expect(true, "when the loop runs again")
	look(false)
	expect(false, "without a quorum")
	look(true)
	expect(true, "when the quorum is back")
}
