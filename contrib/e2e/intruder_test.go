// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

//go:build long

package e2e

import (
	"context"
	"testing"
	"time"

	"github.com/quorumd/quorumd/agent/policy"
	"github.com/quorumd/quorumd/agent/record"
)

// deleteKey deletes a key, as an attacker with write access does.
func (w *world) deleteKey(key string) {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), bound)
	defer cancel()
	if _, err := w.hosts[0].etcd.Delete(ctx, key); err != nil {
		w.t.Fatal(err)
	}
}

// began returns when the operation in flight began.
func began(t *testing.T, value string) time.Time {
	t.Helper()
	op, err := record.Decode[record.Op]([]byte(value))
	if err != nil {
		t.Fatal(err)
	}
	return op.Started
}

func TestNoSecondHostGoesDownWhenTheOperationRecordIsDeleted(t *testing.T) {
	t.Parallel()
	w := threeIdleVoters(t)
	n1, n2 := w.hosts[0], w.hosts[1]
	n1.requestRunning()
	w.eventually("n1's operation is in flight", func() bool { return n1.maintenance() == policy.RequestSafe })
	n2.requestRunning()
	w.eventually("n2's request waits", func() bool { return n2.waitsFor(policy.OperationInFlight) })
	first, _ := w.get(w.keys().Op())
	for range 3 {
		w.deleteKey(w.keys().Op())
		w.never(5*time.Second, "n2's operation began next to n1's", func() bool {
			return n2.maintenance() != policy.RequestWaiting
		})
		w.eventually("the operation is recorded again", func() bool { return !w.absent(w.keys().Op()) })
	}
	if again, _ := w.get(w.keys().Op()); !began(t, again).Equal(began(t, first)) {
		t.Errorf("the operation was %s, and is %s", first, again)
	}
	n1.endMaintenance()
	w.eventually("n1 is back", func() bool { return n1.endedWith(policy.Cycled) })
	w.eventually("n2's operation is in flight", func() bool { return n2.maintenance() == policy.RequestSafe })
	n2.endMaintenance()
	w.eventually("n2 is back", func() bool { return n2.endedWith(policy.Cycled) })
	w.verify(3, 0)
}
