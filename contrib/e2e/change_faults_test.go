// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

//go:build nightly

package e2e

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/quorumd/quorumd/agent/control"
	"github.com/quorumd/quorumd/agent/policy"
	"github.com/quorumd/quorumd/agent/record"
	"github.com/quorumd/quorumd/contrib/testbed"
)

// plannedChange is a change that operators ask for, or a reaction to a failure.
type plannedChange struct {
	name           string
	voters, spares int // before the change
	after          int // voters after the change
	steps          []string
	// prepare makes the change possible. It returns the hosts that may take the steps, and how to ask for the change
	// or cause the failure.
	prepare func(w *world) (actors []*host, ask func())
	// undo asks for the opposite, on the given host or where it is needed. A refusal because it is too late is fine.
	undo func(w *world, by *host)
	// undone is the number of voters after an undo; 0 if it equals after.
	undone int
	// complete reports whether the change, or its undoing, has ended; nil if the number of voters shows it.
	complete func(w *world) bool
	// repair repairs the failure that the change is a reaction to; nil if there is none.
	repair func(w *world)
}

// joining are the steps with which a host becomes a voter, and leaving those with which a voter leaves.
var (
	joining = []string{"begin-join", "add-learner", "start-unit", "promote"}
	leaving = []string{"begin-leave", "set-phase/removing", "remove-member"}
)

func plannedChanges() []plannedChange {
	return []plannedChange{
		{
			name: "three voters become five", voters: 3, spares: 2, after: 5, undone: 3, steps: joining,
			prepare: func(w *world) ([]*host, func()) {
				voters, spares := w.split()
				return spares, func() { w.accepts(voters[0].resizes(5)) }
			},
			undo: undoResize(3),
		},
		{
			name: "five voters become three", voters: 5, after: 3, undone: 5, steps: leaving,
			prepare: func(w *world) ([]*host, func()) {
				return w.hosts, func() { w.accepts(w.hosts[0].resizes(3)) }
			},
			undo: undoResize(5),
		},
		{
			name: "the leader is retired", voters: 3, spares: 1, after: 3, steps: slices.Concat(joining, leaving),
			prepare: func(w *world) ([]*host, func()) {
				voters, spares := w.split()
				return []*host{voters[0], spares[0]}, func() {
					w.accepts(func() string {
						return second(voters[1].retire(control.RetireRequest{Host: voters[0].Options.Name}))
					})
				}
			},
			undo: func(_ *world, by *host) {
				s, ok := by.status()
				if ok && len(s.Retired) > 0 {
					_, _ = by.retire(control.RetireRequest{Host: s.Retired[0].Name, Undo: true})
				}
			},
			complete: func(w *world) bool {
				s, ok := w.hosts[1].status()
				return ok && !slices.ContainsFunc(s.Retired, func(r control.Retired) bool {
					return r.State != control.RetiredLeft
				})
			},
		},
		{
			name: "a peer URL changes", voters: 3, after: 3, steps: readdressing,
			prepare: prepareReaddress, undo: abortRollout, complete: isReaddressed,
		},
		{
			name: "a peer URL becomes https", voters: 3, after: 3, steps: readdressing,
			prepare: prepareHTTPS, undo: abortRollout, complete: isReaddressed,
		},
		{
			name: "an interruptible maintenance is called off", voters: 3, after: 3,
			steps: []string{"start-unit", "end-operation"},
			prepare: func(w *world) ([]*host, func()) {
				voters, _ := w.split()
				down, fails := voters[1], voters[2]
				down.inMaintenance(true)
				return []*host{down}, fails.cutPowerOff
			},
			undo: func(w *world, _ *host) {
				for _, h := range w.hosts {
					if h.running && h.maintenance() != "" {
						_, _ = h.Client.EndMaintenance(w.t.Context()) // a refusal because it has ended is fine
					}
				}
			},
			repair: func(w *world) {
				for _, h := range w.hosts {
					if !h.running {
						w.start(h)
					}
				}
			},
		},
	}
}

// readdressing are the steps of the host whose peer URL changes.
var readdressing = []string{"begin-cycle", "update-member", "take-down", "start-unit"}

func abortRollout(_ *world, by *host) { _ = by.setRollout(record.RolloutAborted) }

// isReaddressed reports whether the readdress has ended, and all members are connected.
func isReaddressed(w *world) bool {
	ended := w.hosts[0].rolloutIs(record.RolloutDone) || w.hosts[0].rolloutIs(record.RolloutAborted)
	return ended && w.connected() == nil
}

// resizes returns a function that asks this host for a resize, and returns the reason if it is refused.
func (h *host) resizes(voters int) func() string {
	return func() string {
		_, refused := h.resize(control.ResizeRequest{Voters: voters})
		return refused
	}
}

// accepts asks until the request is accepted: on a busy machine a voter may have been silent for a moment.
func (w *world) accepts(ask func() string) {
	w.t.Helper()
	w.eventually("the request is accepted", func() bool {
		refused := ask()
		if refused != "" {
			w.t.Log(refused)
		}
		return refused == ""
	})
}

func undoResize(voters int) func(w *world, by *host) {
	return func(_ *world, by *host) { _, _ = by.resize(control.ResizeRequest{Voters: voters}) }
}

// prepareReaddress configures another URL for a follower: that of a second proxy in front of the same port.
func prepareReaddress(w *world) ([]*host, func()) {
	voters, _ := w.split()
	h, by := voters[1], voters[0]
	h.peerProxy = testbed.NewProxy(w.t, address(h.Options.ListenPeerURL))
	return h.readdressTo("http://"+h.peerProxy.Addr(), by)
}

// prepareHTTPS installs certificates for every etcd, and configures https for a follower, at the same address.
func prepareHTTPS(w *world) ([]*host, func()) {
	certify := newPKI(w.t)
	for _, h := range w.hosts {
		h.stop()
		h.Options.Set["etcd.tls"] = certify(h)
		must(w.t, h.WriteConfig())
		w.start(h)
	}
	w.readdressed("every etcd gets certificates", "n1", "n2", "n3")
	voters, _ := w.split()
	h, by := voters[1], voters[0]
	h.Options.ListenPeerURL = https(h.Options.ListenPeerURL)
	return h.readdressTo(https(h.Options.PeerURL), by)
}

// readdressTo configures another peer URL for this host. It returns the host, and how to ask another host for the
// readdress.
func (h *host) readdressTo(url string, by *host) ([]*host, func()) {
	w := h.w
	w.t.Helper()
	h.stop()
	h.Options.PeerURL = url
	must(w.t, h.WriteConfig())
	w.start(h)
	w.eventually("the host reports the changed URL", func() bool {
		return h.reports(policy.HostConflict, "readdress "+h.Options.Name)
	})
	return []*host{h}, func() { w.accepts(func() string { return by.readdress(h.Options.Name) }) }
}

// setRollout pauses, resumes or aborts the rollout. It returns the reason if the request is refused.
func (h *host) setRollout(state string) string {
	h.w.t.Helper()
	_, refused := ask(h, state, h.Client.SetRollout)
	return refused
}

// changeFault is a fault while the agent of one host, actor, has just taken a step of a change. by is the voter that
// [world.bystander] chose.
type changeFault struct {
	what           string
	strike, repair func(w *world, actor, by *host)
}

func changeFaults(c plannedChange) []changeFault {
	nothing := func(*world, *host, *host) {}
	starts := func(w *world, h *host) {
		if !h.running {
			w.start(h)
		}
	}
	refuse := func(h *host, yes bool) {
		h.peerProxy.Set(testbed.Faults{Refuse: yes})
		h.peerProxy.Reset()
	}
	return []changeFault{
		{
			"the agent is killed",
			func(_ *world, actor, _ *host) { actor.kill() },
			func(w *world, actor, _ *host) { starts(w, actor) },
		},
		{
			"the host loses power",
			func(_ *world, actor, _ *host) { actor.cutPowerOff() },
			func(w *world, actor, _ *host) { starts(w, actor) },
		},
		{
			"no member reaches the host's etcd",
			func(_ *world, actor, _ *host) { refuse(actor, true) },
			func(_ *world, actor, _ *host) { refuse(actor, false) },
		},
		{
			"another voter loses power",
			func(_ *world, _, by *host) { by.cutPowerOff() },
			func(w *world, _, by *host) { starts(w, by) },
		},
		{
			"an operator undoes the change",
			func(w *world, _, by *host) { c.undo(w, by) },
			nothing,
		},
		{
			"an operator asks for a restart of another host",
			func(_ *world, _, by *host) { by.requestWork(policy.WorkRestart) },
			func(w *world, _, by *host) {
				w.within(4*formation, "the restart has ended", func() bool { return by.maintenance() == "" })
			},
		},
	}
}

// TestAPlannedChangeEndsAfterAnyFaultAtAnyStep plays every fault at every step.
func TestAPlannedChangeEndsAfterAnyFaultAtAnyStep(t *testing.T) {
	t.Parallel()
	for _, c := range plannedChanges() {
		for _, step := range c.steps {
			for _, f := range changeFaults(c) {
				t.Run(strings.Join([]string{c.name, "after " + step, f.what}, "/"), func(t *testing.T) {
					t.Parallel()
					changeDuringFault(t, c, step, f)
				})
			}
		}
	}
}

// TestAPlannedChangeEndsAfterAFault plays one case for each change, for make test-more.
func TestAPlannedChangeEndsAfterAFault(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ change, step, fault string }{
		{"three voters become five", "add-learner", "the host loses power"},
		{"five voters become three", "set-phase/removing", "the agent is killed"},
		{"the leader is retired", "promote", "another voter loses power"},
		{"a peer URL changes", "update-member", "another voter loses power"},
		{"a peer URL becomes https", "take-down", "the agent is killed"},
		{"an interruptible maintenance is called off", "start-unit", "an operator asks for a restart of another host"},
	} {
		change := plannedChanges()[slices.IndexFunc(plannedChanges(), func(p plannedChange) bool {
			return p.name == c.change && slices.Contains(p.steps, c.step)
		})]
		faults := changeFaults(change)
		fault := faults[slices.IndexFunc(faults, func(f changeFault) bool { return f.what == c.fault })]
		t.Run(strings.Join([]string{c.change, "after " + c.step, c.fault}, "/"), func(t *testing.T) {
			t.Parallel()
			changeDuringFault(t, change, c.step, fault)
		})
	}
}

// changeDuringFault checks that the cluster reaches the new state unattended, or the old one if the change was undone,
// that nothing is left over, and that all accesses of clients are linearizable.
func changeDuringFault(t *testing.T, c plannedChange, step string, f changeFault) {
	t.Helper()
	w := newWorld(t, worldOptions{hosts: c.voters + c.spares, voters: c.voters, proxied: true})
	w.start()
	w.bootstrap()
	w.within(time.Duration(c.voters)*formation, "all voters serve", func() bool {
		return w.has(c.voters, 0) && !w.busy()
	})
	w.waitRolesAgree()
	w.observesReadySpares(c.voters, c.spares)
	actors, askFor := c.prepare(w)
	for _, h := range actors {
		h.stopAt("after " + step)
	}
	registers, err := testbed.StartRegisters(t.Context(), w.listening())
	must(t, err)
	defer registers.Close()
	askFor()
	w.within(4*formation, "an agent has stopped after "+step, func() bool {
		return slices.ContainsFunc(actors, (*host).stopped)
	})
	actor := actors[slices.IndexFunc(actors, (*host).stopped)]
	by := w.bystander(actor)
	t.Logf("%s has stopped after %s: %s (%s)", actor.Options.Name, step, f.what, by.Options.Name)
	f.strike(w, actor, by)
	for _, h := range actors {
		h.resume()
	}
	w.never(faultDuration, "another voter is removed", func() bool { return w.expelled([]*host{by}) })
	if c.repair != nil {
		c.repair(w)
	}
	f.repair(w, actor, by)

	began := time.Now()
	w.within(8*formation, "the cluster has reached its new or its old state", func() bool {
		return (w.has(c.after, 0) || c.undone > 0 && strings.Contains(f.what, "undoes") && w.has(c.undone, 0)) &&
			!w.busy() && (c.complete == nil || c.complete(w))
	})
	w.waitRolesAgree()
	t.Logf("reached %s after the fault", time.Since(began).Round(100*time.Millisecond))
	voters := c.after
	if !w.has(voters, 0) {
		voters = c.undone
	}
	w.verify(voters, 0)
	w.checkHeld()
	if c.after >= c.voters && w.expelled([]*host{by}) {
		t.Errorf("%s, which has no part in the change, was removed", by.Options.Name)
	}
	for _, h := range w.hosts {
		if state := h.maintenance(); state != "" {
			t.Errorf("a request of %s is left: %s", h.Options.Name, state)
		}
	}
	w.linearizable(registers)
}

// bystander returns a voter that takes no part in the change so far: its agent has not stopped at a step, and the host
// is not retired. If the target becomes smaller, it may still leave later.
func (w *world) bystander(actor *host) *host {
	w.t.Helper()
	var by *host
	w.eventually("another voter is known", func() bool {
		i := slices.IndexFunc(w.hosts, func(h *host) bool {
			s, ok := h.status()
			leaves := slices.ContainsFunc(s.Retired, func(r control.Retired) bool { return r.Name == h.Options.Name })
			return ok && h != actor && !leaves && s.Role == policy.RoleVoter && !h.stopped()
		})
		if i >= 0 {
			by = w.hosts[i]
		}
		return i >= 0
	})
	return by
}
