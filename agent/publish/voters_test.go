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

// TestAListOfVotersIsOfNowOrNone: whoever writes what it gives says that it is so now, and nobody would see it age.
func TestAListOfVotersIsOfNowOrNone(t *testing.T) {
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
	gives := func(want bool, when string) {
		t.Helper()
		if l, ok := p.Voters(); ok != want {
			t.Errorf("%s there is a list: %v, %+v; want %v", when, ok, l, want)
		}
	}
	gives(false, "before the first round")
	look(true)
	gives(true, "with a quorum")
	now += blink
	gives(true, "a few rounds later")
	now++
	gives(false, "with a loop that is stuck")
	look(true)
	gives(true, "when it goes on")
	look(false)
	gives(false, "without a quorum")
	look(true)
	gives(true, "when the quorum is back")
}
