// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

//go:build long

package e2e

import (
	"context"
	"maps"
	"slices"
	"strings"
	"syscall"
	"testing"

	"go.etcd.io/etcd/api/v3/etcdserverpb"

	"github.com/quorumd/quorumd/agent/policy"
	"github.com/quorumd/quorumd/agent/record"
	"github.com/quorumd/quorumd/contrib/testbed"
)

// victim says what is killed.
type victim string

const (
	agentOnly victim = "the agent"
	etcdOnly  victim = "etcd"
	both      victim = "the agent and etcd"
	// all of a host is killed at once, as the loss of its power does: the agent with its errands, and etcd if it runs.
	all victim = "all"
	// power is all of it, and what it has written and not synced is lost.
	power victim = "all, without what was not synced,"
)

// following is the moment between two steps when the learner has caught up and is being watched. It is met by what the
// agent says, not by its leash.
const following = "while following"

// watchedFor is for how long a learner is watched in tests that must meet it meanwhile. An agent that was killed and
// started again watches it while it waits for its old lock to run out, which takes up to 4 s; the rest is for a machine
// that is busy.
const watchedFor = "10s"

// joinSteps are the steps of the join of a host that becomes a voter, in their order.
func joinSteps() []string {
	return []string{
		"take-lock", "begin-join", "move-data-aside", "add-learner", "set-phase/added", "write-environment",
		"start-unit",
		"set-phase/started", following, "promote", "set-phase/promoted", "end-operation",
	}
}

// moments are where a joining host is struck, in the order of the join: before and after each of its steps.
func moments() []string {
	var out []string
	for _, s := range joinSteps() {
		if s == following {
			out = append(out, s)
			continue
		}
		out = append(out, "before "+s, "after "+s)
	}
	return out
}

// withEtcd are the moments at which the joining host's etcd runs.
func withEtcd() []string { return moments()[slices.Index(moments(), "after start-unit"):] }

// begins and ends part moments into those before a step and those after one, so that between two of them the join gets
// on by a step. The moment between two steps goes with the first.
func begins(all []string) []string {
	return slices.DeleteFunc(slices.Clone(all), func(at string) bool { return strings.HasPrefix(at, "after ") })
}

func ends(all []string) []string {
	return slices.DeleteFunc(slices.Clone(all), func(at string) bool { return !strings.HasPrefix(at, "after ") })
}

// strikeWorld has n1 as its only voter, and n2 about to become the second one. n3 is always ready to follow, without
// which n2 would not make the number of voters even, and never does: it wants more quiet than there will be.
func strikeWorld(t *testing.T, o worldOptions) *world {
	t.Helper()
	times := quickTimes()
	maps.Copy(times, o.set)
	o.hosts, o.set = 3, times
	o.each = func(i int, h *testbed.HostOptions) {
		if i == 3 {
			h.Set["timing.settle"] = "1h"
			h.Set["host.domain"] = "rack-n1" // so that n2, in a rack of its own, goes first
		}
	}
	w := newWorld(t, o)
	w.start(w.hosts[0], w.hosts[2])
	w.bootstrap()
	w.eventually("n3 is ready to follow", func() bool { return w.ready(w.hosts[2]) })
	return w
}

// ready tells whether a host has published that nothing of its own keeps it from joining.
func (w *world) ready(h *host) bool {
	value, ok := w.get(w.keys().Host("host-" + h.Options.Name))
	r, err := record.Decode[record.Host]([]byte(value))
	return ok && err == nil && r.Waiting == ""
}

// toldTo prepares the host for the moment at which it is struck next; "" when it is not.
func (h *host) toldTo(at string) {
	h.w.t.Helper()
	switch at {
	case following, inMaintenance, "":
		h.resume()
	default:
		h.stopAt(at)
	}
}

// arrive waits until the host is where it is struck.
func (h *host) arrive(at string) {
	h.w.t.Helper()
	switch at {
	case following:
		h.w.eventually(h.Options.Name+" is watched", func() bool { return h.waitsFor(policy.LearnerNotSteady) })
	case inMaintenance:
		h.w.eventually(h.Options.Name+" is in maintenance", func() bool { return h.waitsFor(policy.InMaintenance) })
	default:
		h.waitStopped()
	}
}

// strike kills what is to be killed.
func (h *host) strike(at string, what victim) {
	h.w.t.Helper()
	h.w.t.Logf("kill %s %s", what, at)
	if what == all || what == power {
		must(h.w.t, syscall.Kill(-h.AgentPID(), syscall.SIGKILL)) // its errands are of its process group
		h.kill()
		h.etcdDies()
		h.cutPower()
		return
	}
	if what != etcdOnly {
		h.kill()
	}
	if what != agentOnly {
		h.killEtcd()
	}
}

// strikeAll strikes one join of n2 at each of these moments, one after the other, and sees that it gets to the next one
// and in the end to where it was going.
func strikeAll(t *testing.T, what victim, moments []string) {
	w := strikeWorld(t, worldOptions{})
	n2 := w.hosts[1]
	if slices.ContainsFunc(moments, func(at string) bool { return strings.HasSuffix(at, "move-data-aside") }) {
		w.start(n2) // only who has been a member has something to move
		w.verify(2, 0)
		n2.stop()
		w.expel(n2)
	}
	n2.set("timing.promoteStable", watchedFor)
	n2.toldTo(moments[0])
	w.start(n2)
	for i, at := range moments {
		n2.arrive(at)
		n2.strike(at, what)
		if i+1 < len(moments) {
			n2.toldTo(moments[i+1])
		} else {
			n2.resume()
		}
		if what != etcdOnly {
			w.start(n2)
		}
	}
	w.verify(2, 0)
	w.eventually("n2 knows that it has joined", func() bool { return n2.waitsFor(policy.AtRest) })
}

// expel removes a host from the membership, as an operator might, so that it has to join anew.
func (w *world) expel(h *host) {
	w.t.Helper()
	for _, m := range w.members() {
		if m.PeerURLs[0] != h.Options.PeerURL {
			continue
		}
		w.eventually(h.Options.Name+" is removed", func() bool {
			ctx, cancel := context.WithTimeout(context.Background(), callTimeout)
			defer cancel()
			_, err := w.hosts[0].etcd.MemberRemove(ctx, m.ID)
			return err == nil
		})
		return
	}
	w.t.Fatalf("%s is no member", h.Options.Name)
}

func (w *world) hasLearner() bool {
	return slices.ContainsFunc(w.members(), func(m *etcdserverpb.Member) bool { return m.IsLearner })
}

func TestAJoinSurvivesKillsAtEveryMoment(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		what victim
		when []string
	}{{agentOnly, moments()}, {etcdOnly, withEtcd()}, {both, withEtcd()}} {
		t.Run(string(c.what)+" before each step", func(t *testing.T) {
			t.Parallel()
			strikeAll(t, c.what, begins(c.when))
		})
		t.Run(string(c.what)+" after each step", func(t *testing.T) {
			t.Parallel()
			strikeAll(t, c.what, ends(c.when))
		})
	}
}

// The agent is killed once, and comes back only after n1 has taken its join back, or found that it needs no taking
// back.
func TestAJoinWhoseAgentStaysDeadIsTakenBackByAVoter(t *testing.T) {
	t.Parallel()
	for _, at := range []string{
		"after begin-join", "after add-learner", "after start-unit", following,
		"after promote",
	} {
		t.Run(at, func(t *testing.T) {
			t.Parallel()
			w := strikeWorld(t, worldOptions{})
			n2 := w.hosts[1]
			n2.set("timing.promoteStable", watchedFor)
			n2.toldTo(at)
			w.start(n2)
			n2.arrive(at)
			n2.strike(at, agentOnly)
			n2.resume()
			w.eventually("n1 takes the join back", func() bool { return w.absent(w.keys().Op()) && !w.hasLearner() })
			w.start(n2)
			w.verify(2, 0)
		})
	}
}

func TestEveryStepOfAJoinIsStruck(t *testing.T) {
	t.Parallel()
	notOfAJoin := append(ofARecovery(),
		policy.StepReleaseLock, policy.StepStopUnit, policy.StepRollBack, policy.StepRemoveLearner,
		policy.StepFinishBootstrap,
		policy.StepBeginCycle, policy.StepRunHooks, policy.StepMoveLeader, policy.StepRestartUnit, policy.StepTakeDown,
		policy.StepReboot, policy.StepRunCommand, policy.StepRecordAgain,
		policy.StepBeginRemoval, policy.StepRemoveMember, // see removal_test.go
		policy.StepBeginReplace, // see replace_crash_test.go
		policy.StepGiveWay,
	)
	for _, info := range policy.Steps() {
		struck := slices.ContainsFunc(joinSteps(), func(s string) bool {
			kind, _, _ := strings.Cut(s, "/")
			return kind == string(info.Kind)
		})
		if struck == slices.Contains(notOfAJoin, info.Kind) {
			t.Errorf("%s: struck is %v", info.Kind, struck)
		}
	}
}
