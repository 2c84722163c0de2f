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

// faultDuration is how long a fault lasts: too short for a voter to count as dead.
const faultDuration = 5 * time.Second

// replaceSteps returns the steps with which a spare replaces a voter that does not answer, and those with which the
// standby does.
func replaceSteps() [][]string {
	return [][]string{
		{"begin-replace", "set-phase/removing", "remove-member", "add-learner", "promote"},
		{"begin-replace", "set-phase/removing", "remove-member", "promote"},
	}
}

// otherFault is a fault of another host while n4 replaces n3, which is dead or unhealthy. repair ends the fault.
type otherFault struct {
	what           string
	inject, repair func(w *world)
}

// otherFaults returns the possible faults of other hosts, and one fault of n3 itself.
func otherFaults(n3 otherFault) []otherFault {
	dies := func(what string, i int) otherFault {
		return otherFault{what, func(w *world) { w.hosts[i].cutPowerOff() }, func(w *world) { w.start(w.hosts[i]) }}
	}
	refuses := func(what string, i int) otherFault {
		set := func(refused bool) func(w *world) {
			return func(w *world) {
				w.hosts[i].peerProxy.Set(testbed.Faults{Refuse: refused})
				w.hosts[i].peerProxy.Reset()
			}
		}
		return otherFault{what, set(true), set(false)}
	}
	return []otherFault{
		{
			"the replacing agent dies", func(w *world) { w.hosts[3].kill() },
			func(w *world) { w.start(w.hosts[3]) },
		},
		dies("the replacing machine dies", 3),
		refuses("the replacing host's peer port refuses connections", 3),
		dies("a follower's machine dies", 1),
		dies("the leader's machine dies", 0),
		refuses("the leader's peer port refuses connections", 0),
		n3,
	}
}

// cutPowerOff kills all processes of a host. The host stays down until it is started again.
func (h *host) cutPowerOff() {
	h.w.t.Helper()
	h.kill()
	h.killEtcdIfRunning()
	h.off = true
	h.setReachable(false)
}

// injectDuring resumes n4's stopped agent during the fault, and then ends the fault. No working host may be
// removed.
func (f otherFault) injectDuring(w *world) {
	w.t.Helper()
	f.inject(w)
	w.hosts[3].resume()
	w.never(faultDuration, "a working host is removed", func() bool { return w.expelled(w.hosts[:2]) })
	f.repair(w)
}

// checkHeld checks that, of the running hosts, exactly those without a member have their start guard set.
func (w *world) checkHeld() {
	w.t.Helper()
	for _, h := range w.hosts {
		if !h.running {
			continue
		}
		listed, _ := w.is(h)
		w.eventually(fmt.Sprintf("the start guard is set on %s: %v", h.Options.Name, !listed), func() bool {
			_, err := os.Stat(filepath.Join(h.Options.Dir, "state", "etcd.hold"))
			return errors.Is(err, fs.ErrNotExist) == listed
		})
	}
}

// linearizable stops the clients, and checks that all their accesses are linearizable.
func (w *world) linearizable(registers *testbed.Registers) {
	w.t.Helper()
	seen, err := registers.Stop()
	w.t.Logf("%d accesses, %d with unknown outcome", len(seen), unknown(seen))
	if err = errors.Join(err, testbed.Linearizable(seen)); err != nil {
		w.t.Error(err)
	}
}

// isFull reports whether three members vote and answer, with at most one standby and no operation in flight.
func (w *world) isFull() bool { return w.votersServe(3) }

// votersServe is like isFull, for the given number of voters.
func (w *world) votersServe(want int) bool {
	voters := 0
	for _, h := range w.hosts {
		if w.isVoter(h) && h.writes() {
			voters++
		}
	}
	return voters == want && (w.has(want, 0) || w.has(want, 1)) && !w.busy()
}

// expelled reports whether one of these hosts is not a member; false if etcd does not answer.
func (w *world) expelled(hosts []*host) bool {
	list := w.members()
	return list != nil && slices.ContainsFunc(hosts, func(h *host) bool {
		return !slices.ContainsFunc(list, func(m *etcdserverpb.Member) bool {
			return m.PeerURLs[0] == h.Options.PeerURL
		})
	})
}
