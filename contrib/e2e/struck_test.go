// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

//go:build nightly || faultfs

package e2e

import (
	"errors"
	"slices"
	"time"

	"go.etcd.io/etcd/api/v3/etcdserverpb"

	"github.com/quorumd/quorumd/contrib/testbed"
)

// struckFor is how long that lasts: less than what would make one more a dead voter.
const struckFor = 5 * time.Second

// further is what happens to one more host in the midst of a replacement of n3, which is dead or sick, by n4, and is
// mended when that goes on.
type further struct {
	what         string
	strike, mend func(w *world)
}

// furthers are what may happen beside, and to n3 itself.
func furthers(n3 further) []further {
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
		n3,
	}
}

// during has that happen while n4's agent goes on, which stands still, and mends it. No host that works is removed.
func (f further) during(w *world) {
	w.t.Helper()
	f.strike(w)
	w.hosts[3].resume()
	w.never(struckFor, "a host that works is removed", func() bool { return w.expelled(w.hosts[:2]) })
	f.mend(w)
}

// linearizable ends the clients, and checks that there is an order of all that they have read and written.
func (w *world) linearizable(registers *testbed.Registers) {
	w.t.Helper()
	seen, err := registers.Stop()
	w.t.Logf("%d accesses, of which %d of unknown outcome", len(seen), unknown(seen))
	if err = errors.Join(err, testbed.Linearizable(seen)); err != nil {
		w.t.Error(err)
	}
}

// full tells whether three members vote, each of which answers, beside a standby at most, and no operation is in
// flight.
func (w *world) full() bool {
	voters := 0
	for _, h := range w.hosts {
		if w.isVoter(h) && h.writes() {
			voters++
		}
	}
	return voters == 3 && (w.has(3, 0) || w.has(3, 1)) && !w.busy()
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
