// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

//go:build long

package e2e

import (
	"context"
	"slices"
	"strconv"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/quorumd/quorumd/agent/policy"
	"github.com/quorumd/quorumd/contrib/testbed"
)

// n4 has the role of a permanent learner. At first, its configured limit on learners differs from the voters'.
func TestAPermanentLearnerStaysWhileADeadVoterIsReplaced(t *testing.T) {
	t.Parallel()
	const limit = "etcd.environment"
	w := newWorld(t, worldOptions{
		hosts: 5,
		set: map[string]string{
			"repair.dead": grace.String(), "repair.cleanFor": cleanFor.String(), limit: "{ETCD_MAX_LEARNERS: '2'}",
		},
		each: func(i int, o *testbed.HostOptions) {
			if i == 4 {
				o.Set["host.role"], o.Set[limit] = "learner", "{}"
			}
		},
	})
	n3, n4, n5 := w.hosts[2], w.hosts[3], w.hosts[4]
	w.start(w.hosts[:3]...)
	w.bootstrap()
	w.within(2*formation, "there are 3 voters", func() bool { return w.has(3, 0) })
	w.start(n4)
	w.within(2*formation, "n4 is refused because of its limit", func() bool {
		return n4.hasReason(policy.LearnerLimit)
	})
	if listed, _ := w.is(n4); listed {
		t.Error("n4 is a member")
	}
	n4.stop()
	n4.set(limit, "{ETCD_MAX_LEARNERS: '2'}")
	w.start(n4)
	w.within(2*formation, "n4 is the permanent learner", func() bool {
		return w.has(3, 1) && n4.role() == policy.RoleLearner
	})
	w.checkStaleReads(n4)

	w.lead(w.hosts[0])
	w.start(n5)
	w.waitRolesAgree()
	n3.powerOff()
	w.within(grace+2*bound, "n5 replaces n3", func() bool {
		listed, _ := w.is(n3)
		return !listed && w.isVoter(n5) && w.has(3, 1)
	})
	if _, learner := w.is(n4); !learner || n4.role() != policy.RoleLearner {
		t.Errorf("n4 is a %s", n4.role())
	}
	n4.powerOff() // a dead permanent learner stays a member, although n3 is ready to join
	w.start(n3)
	w.never(20*time.Second, "the lost learner is removed", func() bool {
		listed, _ := w.is(n4)
		return !listed && len(w.members()) > 0
	})
	w.start(n4)
	w.eventually("n4 is the learner again", func() bool { return n4.role() == policy.RoleLearner })
	w.verify(3, 1)
}

// checkStaleReads checks that a learner refuses linearizable reads. It reads a key at the learner right after each
// write, and logs how many of these serializable reads are stale, and for how long.
func (w *world) checkStaleReads(h *host) {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(w.t.Context(), bound)
	defer cancel()
	if _, err := h.etcd.Get(ctx, "mirror"); err == nil {
		w.t.Error("the learner serves a linearizable read")
	}
	const writes = 500
	stale, waits := 0, make([]time.Duration, 0, writes)
	for i := range writes {
		value := strconv.Itoa(i)
		if _, err := w.hosts[0].etcd.Put(ctx, "mirror", value); err != nil {
			w.t.Fatal(err)
		}
		for began, first := time.Now(), true; ; first = false {
			got, err := h.etcd.Get(ctx, "mirror", clientv3.WithSerializable())
			if err != nil {
				w.t.Fatal(err)
			}
			if len(got.Kvs) == 1 && string(got.Kvs[0].Value) == value {
				if !first {
					stale++
					waits = append(waits, time.Since(began))
				}
				break
			}
		}
	}
	worst := time.Duration(0)
	if len(waits) > 0 {
		worst = slices.Max(waits)
	}
	w.t.Logf("%d of %d reads right after a write were stale (%d %%), for %s at most", stale, writes,
		100*stale/writes, worst.Round(100*time.Microsecond))
}
