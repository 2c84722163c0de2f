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

// victim is the set of processes that are killed.
type victim string

const (
	agentOnly victim = "the agent"
	etcdOnly  victim = "etcd"
	both      victim = "the agent and etcd"
	// all is everything on a host, killed at once as by a power loss: agent, child processes, and etcd if it runs.
	all victim = "all"
	// power is like all, and unsynced writes are lost, too.
	power victim = "all, with unsynced writes lost,"
)

// following is the moment between two steps at which the learner has caught up and is being watched. Tests recognize it
// by the agent's reports; the agent does not stop there.
const following = "while following"

// watchedFor is how long a learner is watched in tests that must act during that time. A killed agent watches again
// after its restart, while it waits up to 4 s for its old lock to expire; the rest is margin for a busy machine.
const watchedFor = "10s"

// joinSteps returns the steps with which a host joins as a voter, and among them the moment [following], in order.
func joinSteps() []string {
	return []string{
		"take-lock", "begin-join", "move-data-aside", "add-learner", "set-phase/added", "write-environment",
		"start-unit",
		"set-phase/started", following, "promote", "set-phase/promoted", "end-operation",
	}
}

// moments returns the points at which tests crash a joining host, in the order of the join: before and after each step,
// and [following].
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

// withEtcd returns the moments after the joining host's etcd has started.
func withEtcd() []string { return moments()[slices.Index(moments(), "after start-unit"):] }

// begins returns the moments before a step, and [following]; ends returns the moments after a step. Between two
// successive moments of either list, the join completes a step.
func begins(all []string) []string {
	return slices.DeleteFunc(slices.Clone(all), func(at string) bool { return strings.HasPrefix(at, "after ") })
}

func ends(all []string) []string {
	return slices.DeleteFunc(slices.Clone(all), func(at string) bool { return !strings.HasPrefix(at, "after ") })
}

// joiningWorld makes a world with n1 as its only voter, and n2 about to become the second. quorumd makes the number of
// voters even only while a third host is ready, so n3 always is. But n3 never joins, because its settle time is longer
// than the test.
func joiningWorld(t *testing.T, o worldOptions) *world {
	t.Helper()
	times := quickTimes()
	maps.Copy(times, o.set)
	o.hosts, o.set = 3, times
	o.each = func(i int, h *testbed.HostOptions) {
		if i == 3 {
			h.Set["timing.settle"] = "1h"
			h.Set["host.domain"] = "rack-n1" // so that n2, in a different failure domain, joins first
		}
	}
	w := newWorld(t, o)
	w.start(w.hosts[0], w.hosts[2])
	w.bootstrap()
	w.eventually("n3 is ready to follow", func() bool { return w.ready(w.hosts[2]) })
	return w
}

// ready reports whether a host has published that it is ready to join.
func (w *world) ready(h *host) bool {
	value, ok := w.get(w.keys().Host("host-" + h.Options.Name))
	r, err := record.Decode[record.Host]([]byte(value))
	return ok && err == nil && r.Waiting == ""
}

// stopNext prepares the next fault: the agent is to stop at the given moment. At [following], at [inMaintenance] and
// for "" (no further fault) the agent does not stop.
func (h *host) stopNext(at string) {
	h.w.t.Helper()
	switch at {
	case following, inMaintenance, "":
		h.resume()
	default:
		h.stopAt(at)
	}
}

// arrive waits until the host is at the given moment.
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

// crash kills the victim.
func (h *host) crash(at string, what victim) {
	h.w.t.Helper()
	h.w.t.Logf("kill %s %s", what, at)
	if what == all || what == power {
		must(h.w.t, syscall.Kill(-h.AgentPID(), syscall.SIGKILL)) // its child processes are in its process group
		h.kill()
		h.killEtcdIfRunning()
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

// crashAll crashes n2 at each of these moments of one join, one after another. After each crash it checks that the join
// reaches the next moment, and finally that it succeeds.
func crashAll(t *testing.T, what victim, moments []string) {
	w := joiningWorld(t, worldOptions{})
	n2 := w.hosts[1]
	if slices.ContainsFunc(moments, func(at string) bool { return strings.HasSuffix(at, "move-data-aside") }) {
		w.start(n2) // the join moves data aside only on a former member
		w.verify(2, 0)
		n2.stop()
		w.removeMemberOf(n2)
	}
	n2.set("timing.promoteStable", watchedFor)
	n2.stopNext(moments[0])
	w.start(n2)
	for i, at := range moments {
		n2.arrive(at)
		n2.crash(at, what)
		if i+1 < len(moments) {
			n2.stopNext(moments[i+1])
		} else {
			n2.resume()
		}
		if what != etcdOnly {
			w.start(n2)
		}
	}
	w.verify(2, 0)
	w.eventually("n2 reports that it has joined", func() bool { return n2.waitsFor(policy.Idle) })
}

// removeMemberOf removes a host's member, as an operator might, so that the host has to join again.
func (w *world) removeMemberOf(h *host) {
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
	w.t.Fatalf("%s is not a member", h.Options.Name)
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
			crashAll(t, c.what, begins(c.when))
		})
		t.Run(string(c.what)+" after each step", func(t *testing.T) {
			t.Parallel()
			crashAll(t, c.what, ends(c.when))
		})
	}
}

// n2's agent is killed once. It is started again only after n1 has rolled back n2's join, or has found that no rollback
// is needed.
func TestAVoterRollsBackAJoinWhoseAgentStaysDead(t *testing.T) {
	t.Parallel()
	for _, at := range []string{
		"after begin-join", "after add-learner", "after start-unit", following,
		"after promote",
	} {
		t.Run(at, func(t *testing.T) {
			t.Parallel()
			w := joiningWorld(t, worldOptions{})
			n2 := w.hosts[1]
			n2.set("timing.promoteStable", watchedFor)
			n2.stopNext(at)
			w.start(n2)
			n2.arrive(at)
			n2.crash(at, agentOnly)
			n2.resume()
			w.eventually("n1 rolls the join back", func() bool { return w.absent(w.keys().Op()) && !w.hasLearner() })
			w.start(n2)
			w.verify(2, 0)
		})
	}
}

func TestCrashTestsCoverEveryJoinStep(t *testing.T) {
	t.Parallel()
	notOfAJoin := append(recoveryOnlySteps(),
		policy.StepReleaseLock, policy.StepStopUnit, policy.StepRollBack, policy.StepRemoveLearner,
		policy.StepFinishBootstrap,
		policy.StepBeginCycle, policy.StepRunHooks, policy.StepTransferLeadership, policy.StepRestartUnit,
		policy.StepTakeDown,
		policy.StepReboot, policy.StepRunCommand, policy.StepRecordAgain,
		policy.StepBeginRemoval, policy.StepRemoveMember, // see removal_test.go
		policy.StepBeginReplace, // see replace_crash_test.go
		policy.StepLeaderStepsDown,
	)
	for _, info := range policy.Steps() {
		covered := slices.ContainsFunc(joinSteps(), func(s string) bool {
			kind, _, _ := strings.Cut(s, "/")
			return kind == string(info.Kind)
		})
		if covered == slices.Contains(notOfAJoin, info.Kind) {
			t.Errorf("%s: covered is %v", info.Kind, covered)
		}
	}
}
