// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

//go:build nightly || faultfs

package e2e

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"go.etcd.io/etcd/api/v3/etcdserverpb"

	"github.com/quorumd/quorumd/contrib/testbed"
)

// struckFor is how long that lasts: less than what would make one more a dead voter.
const struckFor = 5 * time.Second

// replaceSteps are the steps by which a spare takes the place of a voter that does not answer, and those by which the
// standby does.
func replaceSteps() [][]string {
	return [][]string{
		{"begin-replace", "set-phase/removing", "remove-member", "add-learner", "promote"},
		{"begin-replace", "set-phase/removing", "remove-member", "promote"},
	}
}

// further is what happens to one more host in the midst of a replacement of n3, which is dead or sick, by n4, and is
// mended when that goes on.
type further struct {
	what         string
	strike, mend func(w *world)
}

// furthers are what may happen beside, and to n3 itself.
func furthers(n3 further) []further {
	dies := func(what string, i int) further {
		return further{what, func(w *world) { w.hosts[i].losesPower() }, func(w *world) { w.start(w.hosts[i]) }}
	}
	refuses := func(what string, i int) further {
		set := func(refused bool) func(w *world) {
			return func(w *world) {
				w.hosts[i].peerProxy.Set(testbed.Faults{Refuse: refused})
				w.hosts[i].peerProxy.Reset()
			}
		}
		return further{what, set(true), set(false)}
	}
	return []further{
		{
			"the agent that takes the place dies", func(w *world) { w.hosts[3].kill() },
			func(w *world) { w.start(w.hosts[3]) },
		},
		dies("the machine that takes the place dies", 3),
		refuses("nobody can connect to the peer port that takes the place", 3),
		dies("a follower's machine dies", 1),
		dies("the leader's machine dies", 0),
		refuses("nobody can connect to the leader's peer port", 0),
		n3,
	}
}

// losesPower kills all that runs on a host, whatever that is, until it is started again.
func (h *host) losesPower() {
	h.w.t.Helper()
	h.kill()
	h.etcdDies() // unless none runs
	h.off = true
	h.answers(false)
}

// during has that happen while n4's agent goes on, which stands still, and mends it. No host that works is removed.
func (f further) during(w *world) {
	w.t.Helper()
	f.strike(w)
	w.hosts[3].resume()
	w.never(struckFor, "a host that works is removed", func() bool { return w.expelled(w.hosts[:2]) })
	f.mend(w)
}

// checkHeld sees that etcd is held back where it has no member, and nowhere else.
func (w *world) checkHeld() {
	w.t.Helper()
	for _, h := range w.hosts {
		if !h.running {
			continue
		}
		listed, _ := w.is(h)
		w.eventually(fmt.Sprintf("etcd is held back on %s: %v", h.Options.Name, !listed), func() bool {
			_, err := os.Stat(filepath.Join(h.Options.Dir, "state", "etcd.hold"))
			return errors.Is(err, fs.ErrNotExist) == listed
		})
	}
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
func (w *world) full() bool { return w.serve(3) }

// serve tells the same of that many.
func (w *world) serve(want int) bool {
	voters := 0
	for _, h := range w.hosts {
		if w.isVoter(h) && h.writes() {
			voters++
		}
	}
	return voters == want && (w.has(want, 0) || w.has(want, 1)) && !w.busy()
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
