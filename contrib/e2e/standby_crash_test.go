// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

//go:build nightly

package e2e

import (
	"slices"
	"testing"

	"go.etcd.io/etcd/api/v3/etcdserverpb"

	"github.com/quorumd/quorumd/contrib/testbed"
)

// TestThereIsAStandbyAgainWhateverFailsDuringItsRemoval injects a fault on one more host at each step, or brings the
// standby back.
func TestThereIsAStandbyAgainWhateverFailsDuringItsRemoval(t *testing.T) {
	t.Parallel()
	type hostFault struct {
		what           string
		inject, repair func(w *world, by, leader *host)
	}
	back := func(h *host) { h.w.start(h) }
	for _, step := range []string{"take-lock", "roll-back", "remove-learner"} {
		for _, also := range []hostFault{
			{
				"the removing agent dies", func(_ *world, by, _ *host) { by.kill() },
				func(_ *world, by, _ *host) { back(by) },
			},
			{ // another voter's agent ends the operation; a removal needs every voter's host to confirm the death
				"the removing agent stays down", func(_ *world, by, _ *host) { by.kill() },
				func(w *world, by, _ *host) {
					w.eventually("no operation is left", func() bool { return w.absent(w.keys().Op()) })
					back(by)
				},
			},
			{
				"the removing host loses power", func(_ *world, by, _ *host) { by.cutPowerOff() },
				func(_ *world, by, _ *host) { back(by) },
			},
			{
				"the leader's host loses power", func(_ *world, _, leader *host) { leader.cutPowerOff() },
				func(_ *world, _, leader *host) { back(leader) },
			},
			{
				"the standby comes back", func(w *world, _, _ *host) { back(w.hosts[3]) },
				func(*world, *host, *host) {},
			},
		} {
			t.Run("after "+step+" "+also.what, func(t *testing.T) {
				t.Parallel()
				w := standbyWorld(t)
				registers, err := testbed.StartRegisters(t.Context(), w.listening())
				must(t, err)
				defer registers.Close()
				by := w.firstVoter()
				leader := w.hosts[slices.IndexFunc(w.hosts, func(h *host) bool { return h != by })]
				w.lead(leader)
				by.stopAt("after " + step)
				w.hosts[3].powerOff()
				w.within(2*bound, by.Options.Name+" has stopped after "+step, by.stopped)
				also.inject(w, by, leader)
				by.resume()
				w.never(faultDuration, "a voter is removed", func() bool { return w.expelled(w.hosts[:3]) })
				also.repair(w, by, leader)
				w.within(3*bound, "three vote, and a standby whose host runs follows", func() bool {
					return w.isFull() && w.has(3, 1) && slices.ContainsFunc(w.hosts, func(h *host) bool {
						_, learner := w.is(h)
						return learner && !h.off
					})
				})
				for _, h := range w.hosts {
					if !h.running {
						w.start(h)
					}
				}
				w.waitRolesAgree()
				w.verify(3, 1)
				w.checkHeld()
				w.linearizable(registers)
			})
		}
	}
}

// firstVoter returns the host of the voter with the lowest member ID: it is the first to do what any voter may do.
func (w *world) firstVoter() *host {
	w.t.Helper()
	var first *etcdserverpb.Member
	for _, m := range w.members() {
		if !m.IsLearner && (first == nil || m.ID < first.ID) {
			first = m
		}
	}
	if first == nil {
		w.t.Fatal("no voter answers")
	}
	return w.hosts[slices.IndexFunc(w.hosts, func(h *host) bool { return h.Options.PeerURL == first.PeerURLs[0] })]
}
