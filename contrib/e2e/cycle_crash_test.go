// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

//go:build long

package e2e

import (
	"context"
	"errors"
	"maps"
	"net"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/quorumd/quorumd/agent/control"
	"github.com/quorumd/quorumd/agent/policy"
	"github.com/quorumd/quorumd/agent/record"
	"github.com/quorumd/quorumd/contrib/testbed"
)

// inMaintenance is the moment between two steps at which etcd is down until an operator ends the maintenance. Tests
// recognize it by the agent's reports; the agent does not stop there.
const inMaintenance = "in maintenance"

// cycleSteps returns the steps of a cycle of the leader's host, in order. For maintenance they include the moment
// [inMaintenance]. The hooks run twice: before etcd stops, and after its return.
func cycleSteps(work policy.Work) []string {
	stop := []string{"restart-unit"}
	if work == policy.WorkMaintenance {
		stop = []string{"take-down", "set-phase/down", inMaintenance, "start-unit"}
	}
	start := []string{"take-lock", "begin-cycle", "run-hooks", "set-phase/ready", "transfer-leadership"}
	return slices.Concat(start, stop, []string{"set-phase/back", "run-hooks", "end-operation"})
}

// unlocked reports whether the step at this moment needs no lock. A step without a lock takes effect however late it
// is.
func unlocked(at string) bool {
	_, step, _ := strings.Cut(at, " ")
	kind, _, _ := strings.Cut(step, "/")
	return !policy.StepKind(kind).Info().Locked
}

// cycleTimes returns the times of a world whose agents repeatedly lose their lock.
func cycleTimes() map[string]string {
	times := quickTimes()
	maps.Copy(times, map[string]string{
		"timing.callTimeout": "600ms", "timing.lockTTL": "3s", "timing.renewEvery": "300ms", "timing.renewGiveUp": "2s",
		"timing.returnStable": "500ms",
	})
	return times
}

// cycleWorld makes three voters with n1 as leader. Hooks on n1 record each of their runs.
func cycleWorld(t *testing.T, set map[string]string) *world {
	t.Helper()
	times := cycleTimes()
	maps.Copy(times, set)
	w := newWorld(t, worldOptions{hosts: 3, voters: 3, set: times, each: func(i int, o *testbed.HostOptions) {
		o.Set["maintenance.hooks"] = filepath.Join(o.Dir, "hooks")
		if i > 2 { // etcd requires that two voters have been connected for 5 s
			o.Set["timing.settle"] = "5500ms"
		}
	}})
	w.hosts[0].hook("before", "echo before >>../log")
	w.hosts[0].hook("after", "echo after >>../log")
	w.start()
	w.bootstrap()
	w.eventually("there are 3 voters", func() bool { return w.has(3, 0) })
	w.waitRolesAgree()
	w.lead(w.hosts[0])
	return w
}

// watchDown checks from outside that no two members are down at once: a member is down when its client port refuses
// connections. The returned function ends the watch.
func (w *world) watchDown() (end func()) {
	ctx, cancel := context.WithCancel(context.Background())
	var watching sync.WaitGroup
	watching.Go(func() {
		tick := time.NewTicker(pollEvery)
		defer tick.Stop()
		for {
			var down []string
			for _, h := range w.hosts {
				conn, err := (&net.Dialer{Timeout: callTimeout}).DialContext(ctx, "tcp", address(h.Options.ClientURL))
				if err == nil {
					_ = conn.Close() // no data was sent, so none can be lost
				} else if errors.Is(err, syscall.ECONNREFUSED) {
					down = append(down, h.Options.Name)
				}
			}
			if len(down) > 1 {
				w.t.Errorf("%v are down at once", down)
			}
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
			}
		}
	})
	return func() { cancel(); watching.Wait() }
}

// checkWrites checks that there were writes, that none failed, and that all acknowledged writes are still in the store.
func (w *world) checkWrites(report testbed.LoadReport) {
	w.t.Helper()
	w.t.Logf("%d writes, %d failed, longest gap %d ms", report.Acked, report.Failed, report.LongestGap.Milliseconds())
	if report.Failed > 0 || report.Acked == 0 {
		w.t.Errorf("%d writes failed, %d were acknowledged", report.Failed, report.Acked)
	}
	ctx, cancel := context.WithTimeout(context.Background(), bound)
	defer cancel()
	client, err := w.client(ctx)
	if err != nil {
		w.t.Fatal(err)
	}
	answer, err := client.Get(ctx, "load/", clientv3.WithPrefix(), clientv3.WithKeysOnly())
	if err != nil {
		w.t.Fatal(err)
	}
	there := map[string]bool{}
	for _, kv := range answer.Kvs {
		there[string(kv.Key)] = true
	}
	for _, write := range report.Writes {
		if !write.Acked.IsZero() && !there[write.Key] {
			w.t.Errorf("write %s was acknowledged, and is lost", write.Key)
		}
	}
}

// cycleState is the state that a late step would change.
type cycleState struct {
	op, hooked string
	etcd       int
	leads      uint64
}

func (h *host) cycleState() cycleState {
	h.w.t.Helper()
	s := cycleState{hooked: h.hookOutput(), etcd: h.etcdPID(), leads: h.w.leader(h.w.hosts[2])}
	h.w.eventually("etcd returns the operation", func() (ok bool) { s.op, ok = h.w.get(h.w.keys().Op()); return ok })
	return s
}

// suspendUntilLockExpires suspends the agent, and waits until its lock has expired. The agent stays suspended.
func (h *host) suspendUntilLockExpires() {
	h.w.t.Helper()
	before, _ := h.w.get(h.w.keys().Lock())
	if err := h.Signal(syscall.SIGSTOP); err != nil {
		h.w.t.Fatal(err)
	}
	h.w.eventually("the lock of the suspended agent has expired", func() bool {
		now, ok := h.w.get(h.w.keys().Lock())
		return ok && (now == "" || now != before)
	})
}

func (h *host) resumeAgent() {
	h.w.t.Helper()
	if err := h.Signal(syscall.SIGCONT); err != nil {
		h.w.t.Fatal(err)
	}
}

// killAt kills the agent at a moment and starts it again. next is the moment of the next fault.
func (h *host) killAt(at, next string) {
	h.w.t.Helper()
	h.crash(at, agentOnly)
	h.stopNext(next)
	h.w.start(h)
}

// suspendAt suspends the agent, which has stopped at the given moment, until its lock has expired, and then lets it
// continue with the step of that moment. If the step needs the lock, it must have no effect until the agent has
// acquired the lock again.
func (h *host) suspendAt(at, next string) {
	h.w.t.Helper()
	h.w.t.Logf("the agent is suspended %s", at)
	h.suspendUntilLockExpires()
	if unlocked(at) {
		h.stopNext(next)
		h.resumeAgent()
		return
	}
	before := h.cycleState()
	h.stopAt("before take-lock")
	h.resumeAgent()
	h.waitStopped()
	after := h.cycleState()
	if !strings.HasSuffix(at, " transfer-leadership") {
		after.leads = before.leads // this step cannot change the leader, so ignore a change
	}
	if after != before {
		h.w.t.Errorf("a late step took effect, %s: before %+v, after %+v", at, before, after)
	}
	h.stopNext(next)
}

// disturbCycle disturbs one cycle of n1, the leader, at each of these moments, one after another. Meanwhile a request
// to restart n2 waits, and a client writes.
func disturbCycle(t *testing.T, work policy.Work, disturb func(h *host, at, next string), moments []string) {
	w := cycleWorld(t, nil)
	n1, n2 := w.hosts[0], w.hosts[1]
	load, unwatch := w.writes(20), w.watchDown()
	defer unwatch()
	n1.stopNext(moments[0])
	n1.requestWork(work)
	asked, over := false, work != policy.WorkMaintenance
	for i, at := range moments {
		if strings.HasSuffix(at, " start-unit") {
			w.eventually("n1 is in maintenance", func() bool { return n1.waitsFor(policy.InMaintenance) })
			n1.endMaintenance()
			over = true
		}
		n1.arrive(at)
		if !asked && w.hasRecord(w.keys().Op()) {
			n2.requestWork(policy.WorkRestart)
			asked = true
		}
		next := ""
		if i+1 < len(moments) {
			next = moments[i+1]
		}
		if strings.HasSuffix(next, " transfer-leadership") {
			w.lead(n1) // there may have been an election on a busy machine
		}
		disturb(n1, at, next)
		if state := n2.maintenance(); asked && state != policy.RequestWaiting && w.hasRecord(w.keys().Op()) &&
			len(w.cycled()) == 0 {
			t.Errorf("%s: n2 is %s during n1's operation", at, state)
		}
	}
	if !over {
		t.Fatal("the maintenance has not been ended")
	}
	w.eventually("n1 is back", func() bool { return n1.endedWith(policy.Cycled) })
	w.eventually("n2's operation has ended", func() bool { return n2.endedWith(policy.Cycled) })
	unwatch()
	w.checkWrites(load.Stop())
	if order := w.cycled(); !slices.Equal(order, []string{"n1", "n2"}) {
		t.Errorf("the hosts were taken down in the order %v, n1 was the first", order)
	}
	w.eventually("the history has the restart of n2, which stopped the member that was to record it",
		func() bool {
			return w.hasStep(n2, policy.StepRestartUnit)
		})
	if ran := n1.hookOutput(); ran != "before\nafter\n" {
		t.Errorf("the hooks wrote %q", ran)
	}
	w.waitRolesAgree()
	w.verify(3, 0)
}

// hasStep reports whether the history records that the host has completed that step.
func (w *world) hasStep(h *host, step policy.StepKind) bool {
	lines, err := w.history()
	return err == nil && slices.ContainsFunc(lines, func(l record.Line) bool {
		return l.Name == h.Options.Name && l.Kind == "step" && l.Code == string(step) &&
			l.Outcome == record.StepOK
	})
}

// cycleMoments returns the moments before and after each step. [inMaintenance] counts as one before a step.
func cycleMoments(work policy.Work) (before, after []string) {
	for _, step := range cycleSteps(work) {
		if step == inMaintenance {
			before = append(before, step)
			continue
		}
		before, after = append(before, "before "+step), append(after, "after "+step)
	}
	return before, after
}

func TestACycleSurvivesFaultsOfItsAgentAtEveryStep(t *testing.T) {
	t.Parallel()
	for _, work := range []policy.Work{policy.WorkMaintenance, policy.WorkRestart} {
		before, after := cycleMoments(work)
		t.Run(string(work)+", killed before each step", func(t *testing.T) {
			t.Parallel()
			disturbCycle(t, work, (*host).killAt, before)
		})
		t.Run(string(work)+", killed after each step", func(t *testing.T) {
			t.Parallel()
			disturbCycle(t, work, (*host).killAt, after)
		})
		asleep := before
		if work == policy.WorkMaintenance { // until then, the steps are those of a restart
			asleep = before[slices.Index(before, "before set-phase/ready"):]
		}
		t.Run(string(work)+", asleep before each step", func(t *testing.T) {
			t.Parallel()
			disturbCycle(t, work, (*host).suspendAt, asleep)
		})
	}
}

// A step that an agent was about to take when it was suspended must not take effect if the agent resumes during another
// host's operation.
func TestAStepOfAReleasedOperationHasNoEffectDuringTheNextOperation(t *testing.T) {
	t.Parallel()
	w := cycleWorld(t, nil)
	n1, n2 := w.hosts[0], w.hosts[1]
	defer w.watchDown()()
	for _, c := range []struct {
		work policy.Work
		at   string
	}{
		{policy.WorkMaintenance, "before transfer-leadership"},
		{policy.WorkMaintenance, "before take-down"},
		{policy.WorkRestart, "before restart-unit"},
	} {
		w.lead(n1)
		n1.stopAt(c.at)
		n1.requestWork(c.work)
		n1.waitStopped()
		t.Logf("the agent is suspended %s, of a %s", c.at, c.work)
		n1.suspendUntilLockExpires()
		ctx, cancel := context.WithTimeout(t.Context(), bound)
		_, err := n2.Client.ReleaseOp(ctx, control.ReleaseRequest{Force: true, Reason: "a test"})
		cancel()
		if err != nil {
			t.Fatal(err)
		}
		n2.requestRunning() // maintenance that keeps n2's etcd running, because n1's suspended agent reports nothing
		w.eventually("n2's operation is in flight", func() bool { return n2.maintenance() == policy.RequestSafe })
		before := n1.cycleState()
		n1.resume()
		n1.resumeAgent()
		w.eventually("n1 reports that its operation was released", func() bool {
			return n1.endedWith(policy.Cancelled)
		})
		if after := n1.cycleState(); after != before {
			t.Errorf("a late step took effect, %s: before %+v, after %+v", c.at, before, after)
		}
		n2.endMaintenance()
		w.eventually("n2 is back", func() bool { return n2.endedWith(policy.Cycled) })
	}
	w.waitRolesAgree()
	w.verify(3, 0)
}

func TestARolloutContinuesAlthoughEveryAgentIsKilledDuringItsOperation(t *testing.T) {
	t.Parallel()
	w := cycleWorld(t, nil)
	n1, n2, n3 := w.hosts[0], w.hosts[1], w.hosts[2]
	before := w.etcdPIDs()
	load, unwatch := w.writes(20), w.watchDown()
	defer unwatch()
	moments := map[*host]string{n1: "after restart-unit", n2: "after begin-cycle", n3: "after end-operation"}
	for h, at := range moments {
		h.stopAt(at)
	}
	ctx, cancel := context.WithTimeout(t.Context(), bound)
	defer cancel()
	if _, err := n1.Client.StartRollout(ctx, control.RolloutRequest{
		Work:   policy.WorkRestart,
		Reason: "a test",
	}); err != nil {
		t.Fatal(err)
	}
	for range w.hosts {
		w.eventually("an agent has stopped", func() bool { return slices.ContainsFunc(w.hosts, (*host).stopped) })
		h := w.hosts[slices.IndexFunc(w.hosts, (*host).stopped)]
		h.killAt(moments[h], "")
		if err := h.leash.remove(stoppedFile); err != nil {
			t.Fatal(err)
		}
	}
	w.eventually("the rollout is done", func() bool {
		s, ok := n2.status()
		return ok && s.Rollout != nil && s.Rollout.State == record.RolloutDone
	})
	unwatch()
	w.checkWrites(load.Stop())
	for i, pid := range w.etcdPIDs() {
		if pid == before[i] || pid == 0 {
			t.Errorf("etcd of %s has PID %d, and had %d: it was not restarted", w.hosts[i].Options.Name, pid, before[i])
		}
	}
	if order := w.cycled(); len(order) != 3 || order[2] != "n1" {
		t.Errorf("the hosts were restarted in the order %v, the leader n1 is to be the last", order)
	}
	w.waitRolesAgree()
	w.verify(3, 0)
}

func TestCrashTestsCoverEveryCycleStep(t *testing.T) {
	t.Parallel()
	notOfACycle := append(recoveryOnlySteps(),
		policy.StepReleaseLock, policy.StepBeginJoin, policy.StepMoveDataAside, policy.StepAddLearner,
		policy.StepWriteEnv, policy.StepStopUnit,
		policy.StepPromote, policy.StepRollBack, policy.StepRemoveLearner, policy.StepFinishBootstrap,
		policy.StepReboot,                                // reboots whole hosts: see contrib/lab
		policy.StepRunCommand,                            // see command_test.go
		policy.StepBeginRemoval, policy.StepRemoveMember, // see removal_test.go
		policy.StepRecordAgain,     // see intruder_test.go
		policy.StepBeginReplace,    // see replace_crash_test.go
		policy.StepLeaderStepsDown, // no step follows it: see slow_leader_test.go
	)
	for _, info := range policy.Steps() {
		covered := slices.ContainsFunc(slices.Concat(cycleSteps(policy.WorkMaintenance),
			cycleSteps(policy.WorkRestart)), func(s string) bool {
			kind, _, _ := strings.Cut(s, "/")
			return kind == string(info.Kind)
		})
		if covered == slices.Contains(notOfACycle, info.Kind) {
			t.Errorf("%s: covered is %v", info.Kind, covered)
		}
	}
}
