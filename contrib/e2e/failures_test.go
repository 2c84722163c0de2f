// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

//go:build nightly

package e2e

import (
	"context"
	"fmt"
	"maps"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/quorumd/quorumd/agent/policy"
	"github.com/quorumd/quorumd/contrib/testbed"
)

// limits are the time limits of n2's join.
type limits struct {
	stall time.Duration // how long the join may make no progress
	whole time.Duration
}

// short returns limits for a learner that never serves, patient those for all other tests. A new member that gets its
// data as a snapshot serves only after 7 s: it misses the answer to the proposal that publishes its name, and proposes
// again after that time.
func short() limits   { return limits{stall: 4 * time.Second, whole: time.Minute} }
func patient() limits { return limits{stall: 12 * time.Second, whole: time.Minute} }

// slack is how much later than its limit a rollback may happen. It allows for some rounds and steps, and for etcd,
// which stalls for up to 5 s per stream while it drops a peer that does not read.
const slack = 20 * time.Second

// badWorld makes a world with n1 as its only voter and a target of one standby. n2 joins first and fails in some way;
// n3 works.
func badWorld(t *testing.T, proxied bool, l limits) *world {
	t.Helper()
	w := newWorld(t, worldOptions{
		hosts: 3, voters: 1, standbys: 1, proxied: proxied, set: quickTimes(),
		each: func(i int, o *testbed.HostOptions) {
			if i != 2 {
				return
			}
			maps.Copy(o.Set, map[string]string{
				"timing.learnerStall": l.stall.String(), "timing.learnerMax": l.whole.String(),
				"timing.joinBackoff":   "5m",
				"timing.promoteStable": "6s", "etcd.stopTimeout": "2s",
			})
		},
	})
	w.start(w.hosts[0])
	w.bootstrap()
	return w
}

// startInTurn starts n2, and starts n3 when n2 has begun to join.
func (w *world) startInTurn() {
	w.t.Helper()
	w.start(w.hosts[1])
	w.eventually("n2 has begun to join", func() bool { value, ok := w.get(w.keys().Op()); return ok && value != "" })
	w.start(w.hosts[2])
}

// expectRollback waits until n2's join has failed within its limit for the given reason. It checks that n2 backs off,
// and that n3 has joined meanwhile.
func (w *world) expectRollback(code policy.ReasonCode, limit time.Duration) {
	w.t.Helper()
	n2, n3 := w.hosts[1], w.hosts[2]
	w.eventually("n2 is a learner", func() bool { _, learner := w.is(n2); return learner })
	added := time.Now()
	w.eventually("n2 is removed", func() bool { listed, _ := w.is(n2); return !listed && len(w.members()) > 0 })
	took := time.Since(added)
	w.unhinder()
	if took > limit+slack {
		w.t.Errorf("n2 was removed after %s, its limit is %s", took, limit)
	}
	w.eventually("n3 joins", func() bool { return n3.role() == policy.RoleStandby })
	w.t.Logf("n2 was removed after %s, n3 had joined %s later", took.Round(time.Millisecond),
		(time.Since(added) - took).Round(time.Millisecond))
	w.verify(1, 1)
	if !n2.hasReason(policy.BackingOff) {
		s, _ := n2.status()
		w.t.Errorf("n2 does not report that it backs off: %v", s.Reasons)
	}
	if how := w.ending(n2); how != code {
		w.t.Errorf("the join of n2 ended with %q, want %s", how, code)
	}
	w.checkUnitStopped(n2)
}

func TestALearnerThatNeverStartsIsRemovedForTheNextHost(t *testing.T) {
	t.Parallel()
	for name, does := range map[string]string{"it hangs": "exec sleep 86400", "it ends at once": "exit 1"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := badWorld(t, false, short())
			w.hosts[1].breakEtcd(does)
			w.startInTurn()
			w.expectRollback(policy.LearnerStalled, short().stall)
		})
	}
}

func TestALearnerThatStopsIsRemovedForTheNextHost(t *testing.T) {
	t.Parallel()
	for at, l := range map[string]limits{"after start-unit": short(), "after set-phase/started": patient()} {
		t.Run(at, func(t *testing.T) {
			t.Parallel()
			w := badWorld(t, false, l)
			n2 := w.hosts[1]
			n2.stopAt(at)
			w.startInTurn()
			n2.waitStopped()
			n2.signalEtcd(syscall.SIGSTOP)
			n2.resume()
			w.expectRollback(policy.LearnerStalled, l.stall)
		})
	}
}

func TestALearnerThatIsCutOffIsRemovedForTheNextHost(t *testing.T) {
	t.Parallel()
	w := badWorld(t, true, patient())
	n2 := w.hosts[1]
	n2.stopAt("after set-phase/started")
	w.startInTurn()
	n2.waitStopped()
	w.hinder(testbed.Cut())
	n2.resume()
	w.expectRollback(policy.LearnerStalled, patient().stall)
}

// A learner does not serve clients until it has received the data for the first time, so its progress is unknown until
// then. It must finish within the time that is allowed without progress.
func TestALearnerTooSlowAtItsFirstCopyIsRemovedForTheNextHost(t *testing.T) {
	t.Parallel()
	w := badWorld(t, true, short())
	w.fill(24 << 20)
	w.hinder(testbed.Faults{Rate: 1 << 20})
	w.startInTurn()
	w.expectRollback(policy.LearnerStalled, short().stall)
}

func TestALearnerThatStaysBehindIsRemovedForTheNextHost(t *testing.T) {
	t.Parallel()
	l := limits{stall: patient().stall, whole: 20 * time.Second}
	w := badWorld(t, true, l)
	n2 := w.hosts[1]
	n2.stopAt("after set-phase/started")
	w.startInTurn()
	n2.waitStopped()
	w.hinder(testbed.Faults{Rate: 64 << 10})
	load, err := testbed.StartWriteLoad(t.Context(),
		testbed.LoadOptions{Endpoints: w.hosts[0].etcd.Endpoints(), Rate: 200, ValueSize: 4 << 10})
	if err != nil {
		t.Fatal(err)
	}
	defer load.Stop()
	n2.resume()
	w.eventually("n2 reports that it is behind", func() bool { return n2.waitsFor(policy.LearnerBehind) })
	w.expectRollback(policy.JoinTimedOut, l.whole)
}

// hinder injects faults into all traffic between the etcds of n2 and n1. n1 sends to n2 over connections that n2 opens.
func (w *world) hinder(f testbed.Faults) {
	for _, h := range w.hosts[:2] {
		h.peerProxy.Set(f)
	}
}

// unhinder removes all faults.
func (w *world) unhinder() {
	for _, h := range w.hosts {
		if h.peerProxy != nil {
			h.peerProxy.Set(testbed.Faults{})
		}
	}
}

// fill writes that many bytes in few entries, so that etcd sends them as entries and not as a snapshot.
func (w *world) fill(bytes int) {
	w.t.Helper()
	const size = 1 << 20
	value := strings.Repeat("x", size)
	for i := range bytes / size {
		ctx, cancel := context.WithTimeout(context.Background(), bound)
		_, err := w.hosts[0].etcd.Put(ctx, fmt.Sprintf("fill/%d", i), value)
		cancel()
		if err != nil {
			w.t.Fatal(err)
		}
	}
}
