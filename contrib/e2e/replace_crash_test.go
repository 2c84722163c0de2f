// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

//go:build nightly

package e2e

import (
	"errors"
	"slices"
	"testing"
	"time"

	"go.etcd.io/etcd/api/v3/etcdserverpb"

	"github.com/quorumd/quorumd/contrib/testbed"
)

// struckFor is how long that lasts: less than what would make one more a dead voter.
const struckFor = 5 * time.Second

// further is what happens to one more host in the midst of a replacement of n3 by n4, and is mended when that goes on.
type further struct {
	what         string
	strike, mend func(w *world)
}

func furthers() []further {
	dies := func(i int) (strike, mend func(w *world)) {
		return func(w *world) { w.hosts[i].die() }, func(w *world) { w.start(w.hosts[i]) }
	}
	n2Dies, n2Back := dies(1)
	n1Dies, n1Back := dies(0)
	n1 := func(w *world, refused bool) {
		w.hosts[0].peerProxy.Set(testbed.Faults{Refuse: refused})
		w.hosts[0].peerProxy.Reset()
	}
	return []further{
		{
			"the agent that takes the place dies", func(w *world) { w.hosts[3].kill() },
			func(w *world) { w.start(w.hosts[3]) },
		},
		{"a follower's machine dies", n2Dies, n2Back},
		{"the leader's machine dies", n1Dies, n1Back},
		{
			"nobody can connect to the leader's peer port", func(w *world) { n1(w, true) },
			func(w *world) { n1(w, false) },
		},
		{"the dead one comes back", func(w *world) { w.start(w.hosts[2]) }, func(*world) {}},
	}
}

// TestWhateverHappensInTheMidstOfAReplacementFullStrengthComesBack has one further host struck at each step. All that
// clients read and write meanwhile has an order, and nothing is left over.
func TestWhateverHappensInTheMidstOfAReplacementFullStrengthComesBack(t *testing.T) {
	t.Parallel()
	for _, at := range []string{
		"after begin-replace", "after set-phase/removing", "after remove-member", "after add-learner", "after promote",
	} {
		for _, also := range furthers() {
			t.Run(at+" "+also.what, func(t *testing.T) {
				t.Parallel()
				w := repairWorldWith(t, 0, true)
				n3, n4 := w.hosts[2], w.hosts[3]
				registers, err := testbed.StartRegisters(t.Context(), w.listening())
				if err != nil {
					t.Fatal(err)
				}
				defer registers.Close()
				n4.stopAt(at)
				n3.die()
				w.within(grace+bound, n4.Options.Name+" stands still "+at, n4.stopped)
				also.strike(w)
				n4.resume()
				w.never(struckFor, "a host that works is removed", func() bool { return w.expelled(w.hosts[:2]) })
				also.mend(w)
				began := time.Now()
				w.within(3*(grace+bound), "three vote and answer again", w.full) // its time may begin anew
				t.Logf("full strength %v after all was mended", time.Since(began).Round(100*time.Millisecond))
				if w.expelled(w.hosts[:2]) {
					t.Error("a host that works was removed")
				}
				if !n3.running {
					w.start(n3)
				}
				w.rolesAgree()
				w.verify(3, 0)
				seen, err := registers.Stop()
				t.Logf("%d accesses, of which %d of unknown outcome", len(seen), unknown(seen))
				if err = errors.Join(err, testbed.Linearizable(seen)); err != nil {
					t.Error(err)
				}
			})
		}
	}
}

// full tells whether three members vote, each of which answers, and no operation is in flight.
func (w *world) full() bool {
	voters := 0
	for _, h := range w.hosts {
		if w.isVoter(h) && h.writes() {
			voters++
		}
	}
	return voters == 3 && w.has(3, 0) && !w.busy()
}

// expelled tells whether one of these hosts is none of the members, as far as etcd answers.
func (w *world) expelled(hosts []*host) bool {
	list := w.members()
	return list != nil && slices.ContainsFunc(hosts, func(h *host) bool {
		return !slices.ContainsFunc(list, func(m *etcdserverpb.Member) bool {
			return m.PeerURLs[0] == h.Options.PeerURL
		})
	})
}
