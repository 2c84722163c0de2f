// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

//go:build long

package e2e

import (
	"context"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/quorumd/quorumd/agent/control"
	"github.com/quorumd/quorumd/agent/policy"
	"github.com/quorumd/quorumd/contrib/testbed"
)

// checkAnswers checks that the agent answers at once, whatever it is waiting for.
func (h *host) checkAnswers() {
	h.w.t.Helper()
	const asked, limit = 21, time.Second
	var took []time.Duration
	for range asked {
		began := time.Now()
		if _, ok := h.status(); !ok {
			h.w.t.Errorf("the agent of %s does not answer", h.Options.Name)
		}
		took = append(took, time.Since(began))
	}
	slices.Sort(took)
	h.w.t.Logf("%s answers in %s at the median, %s at most", h.Options.Name, took[asked/2].Round(10*time.Microsecond),
		took[asked-1].Round(10*time.Microsecond))
	if took[asked/2] > limit { // a single answer may be late on a busy machine
		h.w.t.Errorf("%s takes %s to answer, the limit is %s", h.Options.Name, took[asked/2], limit)
	}
}

// expectNoStep checks that agents that report no reachable voter take no step.
func (w *world) expectNoStep(hosts []*host) {
	w.t.Helper()
	for _, h := range hosts {
		w.eventually(h.Options.Name+" reports that no voter answers", func() bool {
			return h.hasReason(policy.NoQuorum)
		})
		h.checkAnswers()
	}
	before := map[*host]uint64{}
	for _, h := range hosts {
		before[h] = h.steps()
	}
	w.never(quiet, "an agent that reaches no voter takes a step", func() bool {
		return slices.ContainsFunc(hosts, func(h *host) bool { return h.steps() != before[h] })
	})
}

func TestNoStepIsTakenWithoutAQuorum(t *testing.T) {
	t.Parallel()
	w := newWorld(t, worldOptions{hosts: 4, standbys: 1, set: quickTimes(), each: func(i int, o *testbed.HostOptions) {
		if i > 2 { // etcd requires that two voters have been connected for 5 s
			o.Set["timing.settle"] = "5500ms"
		}
	}})
	n4 := w.hosts[3]
	w.start(w.hosts[:3]...)
	w.bootstrap()
	w.eventually("there are three voters", func() bool { return w.has(3, 0) })
	n4.stopAt("after set-phase/added")
	w.start(n4)
	n4.waitStopped()
	for _, h := range w.hosts[:2] {
		h.signalEtcd(syscall.SIGSTOP)
	}
	n4.resume()
	w.expectNoStep(w.hosts)
	w.checkUnitStopped(n4)
	for _, h := range w.hosts[:2] {
		h.signalEtcd(syscall.SIGCONT)
	}
	w.verify(3, 1)
}

func TestACutOffAgentTakesNoStepAndItsJoinIsRolledBack(t *testing.T) {
	t.Parallel()
	w := joiningWorld(t, worldOptions{fronts: true})
	n2 := w.hosts[1]
	n2.set("timing.promoteStable", watchedFor)
	w.start(n2)
	w.eventually("n2 is watched", func() bool { return n2.waitsFor(policy.LearnerNotSteady) })
	n2.cutOff(true)
	w.expectNoStep([]*host{n2})
	w.eventually("n1 rolls the join back", func() bool { return w.absent(w.keys().Op()) && len(w.members()) == 1 })
	w.expectNoStep([]*host{n2})
	n2.cutOff(false)
	w.verify(2, 0)
}

func TestAnAgentCutOffForAMomentContinuesItsJoin(t *testing.T) {
	t.Parallel()
	w := joiningWorld(t, worldOptions{fronts: true})
	n2 := w.hosts[1]
	n2.set("timing.promoteStable", watchedFor)
	n2.set("timing.orphanGrace", "1h") // for n2 alone: n1, which was started before, keeps its own
	w.start(n2)
	w.eventually("n2 is watched", func() bool { return n2.waitsFor(policy.LearnerNotSteady) })
	n2.cutOff(true)
	w.eventually("n2 reports that there is no quorum", func() bool { return n2.waitsFor(policy.NoQuorum) })
	n2.cutOff(false)
	w.verify(2, 0)
	if how := w.ending(n2); how != policy.Joined {
		t.Errorf("the join of n2 ended with %q", how)
	}
}

func TestAHostWithAWrongClockJoinsOnceItIsRight(t *testing.T) {
	t.Parallel()
	w := joiningWorld(t, worldOptions{})
	n2 := w.hosts[1]
	n2.setClock(time.Minute)
	w.start(n2)
	for _, offset := range []time.Duration{time.Minute, -time.Minute} {
		n2.setClock(offset)
		w.eventually("n2 detects that its clock is off", func() bool { return n2.waitsFor(policy.ClockSkew) })
		w.never(quiet/2, "a host with a wrong clock takes a step", func() bool {
			return n2.steps() > 0 || len(w.members()) > 1
		})
	}
	n2.setClock(0)
	w.verify(2, 0)
}

func TestALearnerWhoseClockGoesWrongIsNotPromoted(t *testing.T) {
	t.Parallel()
	w := joiningWorld(t, worldOptions{})
	n2 := w.hosts[1]
	n2.set("timing.promoteStable", watchedFor) // the clocks are compared once a second
	w.start(n2)
	w.eventually("n2 is watched", func() bool { return n2.waitsFor(policy.LearnerNotSteady) })
	n2.setClock(time.Minute)
	w.eventually("n2 detects that its clock is off", func() bool { return n2.waitsFor(policy.ClockSkew) })
	w.never(quiet/2, "n2 is promoted", func() bool { return w.isVoter(n2) })
	n2.setClock(0)
	w.verify(2, 0)
}

// pause stops all steps, or resumes them.
func (w *world) pause(yes bool) {
	w.t.Helper()
	w.eventually("n1 accepts the request", func() bool {
		ctx, cancel := context.WithTimeout(context.Background(), callTimeout)
		defer cancel()
		var err error
		if yes {
			req := control.PauseRequest{Reason: "a test", For: control.Duration(time.Hour)}
			_, err = w.hosts[0].Client.Pause(ctx, req)
		} else {
			_, err = w.hosts[0].Client.Resume(ctx)
		}
		return err == nil
	})
}

func TestAHungLoopLosesTheLockAndItsLateStepHasNoEffect(t *testing.T) {
	t.Parallel()
	for _, at := range []string{"begin-join", "add-learner", "promote", "end-operation"} {
		t.Run(at, func(t *testing.T) {
			t.Parallel()
			w := joiningWorld(t, worldOptions{set: map[string]string{"timing.orphanGrace": "1h"}})
			n2 := w.hosts[1]
			n2.stopAt("before " + at)
			w.start(n2)
			n2.waitStopped()
			hung := time.Now()
			w.eventually("the lock is gone", func() bool { return w.absent(w.keys().Lock()) })
			// The lease expires after 4 s, and etcd checks for expired leases twice a second; the rest is margin.
			if took := time.Since(hung); took > 12*time.Second {
				t.Errorf("the lock was lost only after %s; its lease lasts 4 s", took)
			}
			n2.checkAnswers()
			w.pause(true) // from here on only the step that hung can change anything
			before := w.changeableState()
			n2.resume()
			w.eventually("n2 continues", func() bool { return n2.waitsFor(policy.Paused) })
			w.never(quiet/2, "the step has taken effect", func() bool { return w.changeableState() != before })
			w.pause(false)
			w.verify(2, 0)
		})
	}
}

// changeableState returns what steps can change, as one text: the members and the operation record.
func (w *world) changeableState() string {
	text, _ := w.get(w.keys().Op())
	for _, m := range w.members() {
		text += "\n" + m.String()
	}
	return text
}

// checkUnitStopped checks that no etcd runs on a host without a member.
func (w *world) checkUnitStopped(h *host) {
	w.t.Helper()
	w.eventually("etcd of "+h.Options.Name+" is stopped", func() bool {
		ctx, cancel := context.WithTimeout(context.Background(), callTimeout)
		defer cancel()
		pid, err := h.EtcdPID(ctx)
		return err == nil && pid == 0
	})
}

// ending returns the code with which the first join of a host ended, according to the history; "" if none has.
func (w *world) ending(h *host) policy.ReasonCode {
	w.t.Helper()
	lines, err := w.history()
	if err != nil {
		w.t.Fatal(err)
	}
	for _, l := range lines {
		if l.Kind == "operation" && strings.HasPrefix(l.Text, "join of "+h.Options.Name+" ") {
			return policy.ReasonCode(l.Code)
		}
	}
	return ""
}
