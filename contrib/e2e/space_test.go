// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

//go:build long

package e2e

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/quorumd/quorumd/agent/policy"
)

// remedied is how long a cluster may reject writes until its agents have freed space.
const remedied = 5 * time.Minute

// remediating makes a cluster of three voters with a quota of 24 MiB, whose agents free space after a NOSPACE alarm. It
// returns when the permits for that are written. By then the agents have recorded a revision that is old enough for a
// compaction.
func remediating(t *testing.T) *world {
	t.Helper()
	w := allVoters(t, worldOptions{hosts: 3, voters: 3, set: map[string]string{
		"etcd.environment": `{ETCD_QUOTA_BACKEND_BYTES: "25165824"}`,
		"space.noSpace":    "remediate", "space.retain": "1m",
	}})
	w.within(remedied, "the permits to free space are written", func() bool {
		return !w.absent(w.keys().Permit(policy.MaxPermits))
	})
	return w
}

// writeUntilFull writes until etcd raises the alarm. key returns the prefix of the keys of the nth transaction, which
// writes 256 kB.
func (w *world) writeUntilFull(key func(n int) string) {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(w.t.Context(), bound)
	defer cancel()
	for n := range 1000 {
		var puts []clientv3.Op
		for i := range 64 {
			puts = append(puts, clientv3.OpPut(fmt.Sprintf("%s/%d", key(n), i), strings.Repeat("x", 4000)))
		}
		_, err := w.hosts[0].etcd.Txn(ctx).Then(puts...).Commit()
		switch {
		case errors.Is(err, rpctypes.ErrNoSpace):
			return
		case err != nil:
			w.t.Fatal(err)
		}
	}
	w.t.Fatal("etcd accepts 256 MiB despite its quota")
}

// acceptsWrites reports whether etcd accepts a write.
func (w *world) acceptsWrites() bool {
	ctx, cancel := context.WithTimeout(w.t.Context(), bound)
	defer cancel()
	_, err := w.hosts[0].etcd.Put(ctx, "/written-again", "")
	return err == nil
}

func (w *world) alarmed() bool {
	ctx, cancel := context.WithTimeout(w.t.Context(), bound)
	defer cancel()
	list, err := w.hosts[0].etcd.AlarmList(ctx)
	return err != nil || len(list.Alarms) > 0
}

func TestAnAgentFreesSpaceWhenOldRevisionsFillTheDatabases(t *testing.T) {
	t.Parallel()
	w := remediating(t)
	began := time.Now()
	w.writeUntilFull(func(int) string { return "/filler" })
	w.within(remedied, "etcd accepts writes again", w.acceptsWrites)
	t.Logf("etcd rejected writes for %.1f s at most", time.Since(began).Seconds())
	w.within(remedied, "no alarm is left", func() bool { return !w.alarmed() })
	ctx, cancel := context.WithTimeout(t.Context(), bound)
	defer cancel()
	for _, h := range w.hosts { // the file may be larger than its content: it grows in steps of 16 MiB
		s, err := h.etcd.Status(ctx, h.etcd.Endpoints()[0])
		if err != nil || s.DbSize > 20<<20 {
			t.Errorf("the database of %s still has %d MiB, %v", h.Options.Name, s.DbSize>>20, err)
		}
	}
	w.within(remedied, "the permits are complete again", func() bool { return !w.absent(w.keys().Permit(1)) })
	if !w.has(3, 0) {
		t.Error("not all voters are left")
	}
	w.equalHashes()
}

func TestTheHostOfAnOperationFreesSpaceAndThenFinishes(t *testing.T) {
	t.Parallel()
	w := remediating(t)
	holder := w.hosts[1]
	holder.requestRunning()
	w.eventually("the maintenance has begun", func() bool {
		return !w.absent(w.keys().Op()) && !w.absent(w.keys().Lock())
	})
	w.writeUntilFull(func(int) string { return "/filler" })
	w.within(remedied, "etcd accepts writes again", w.acceptsWrites)
	if w.absent(w.keys().Permit(1)) {
		t.Error("an agent has claimed a permit, although another one holds the lock")
	}
	holder.endMaintenance()
	w.within(formation, "the maintenance has ended", func() bool { return w.absent(w.keys().Op()) })
}

func TestNoAgentDisarmsTheAlarmIfTheLiveDataFillsTheQuota(t *testing.T) {
	t.Parallel()
	w := remediating(t)
	w.writeUntilFull(func(n int) string { return fmt.Sprintf("/filler/%d", n) })
	w.within(remedied, "an agent reports that a compaction did not help", func() bool {
		for _, h := range w.hosts {
			s, ok := h.status()
			for _, r := range s.Reasons {
				if ok && strings.Contains(r.Text, "a compaction has not changed that") {
					return true
				}
			}
		}
		return false
	})
	ctx, cancel := context.WithTimeout(t.Context(), bound)
	defer cancel()
	list, err := w.hosts[0].etcd.AlarmList(ctx)
	if err != nil || len(list.Alarms) == 0 || list.Alarms[0].Alarm != pb.AlarmType_NOSPACE {
		t.Fatalf("the alarms are %v, %v", list, err)
	}
	// an operator deletes the keys and compacts
	answer, err := w.hosts[0].etcd.Delete(ctx, "/filler/", clientv3.WithPrefix())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.hosts[0].etcd.Compact(ctx, answer.Header.Revision); err != nil {
		t.Fatal(err)
	}
	w.within(2*remedied, "etcd accepts writes again", w.acceptsWrites)
}
