// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package lock_test

import (
	"context"
	"testing"
	"time"
)

// TestTheEtcdClientsSessionOverlaps shows that the trials can detect an overlap. It also shows why this package does
// not use the session, which counts its validity from the receipt of an answer.
func TestTheEtcdClientsSessionOverlaps(t *testing.T) {
	t.Parallel()
	c := newCourt(t)
	const batch, most = 40, 4 * 40
	for trials := 0; ; {
		partitions := try(t, batch/2, batch/2, func(ctx context.Context, n int) (outcome, error) {
			return c.acrossPartition(ctx, theirSession, trials+n, cutOff)
		})
		pauses := try(t, batch/2, batch/2, func(ctx context.Context, n int) (outcome, error) {
			return c.acrossPause(ctx, theirSession, trials+n, answerWaiting)
		})
		trials += batch
		t.Logf("of %d trials across partitions %d overlap, worst margin %v; of %d across pauses %d, worst margin %v",
			len(partitions), overlaps(partitions), worst(partitions), len(pauses), overlaps(pauses), worst(pauses))
		if overlaps(partitions)+overlaps(pauses) > 0 {
			return
		}
		if trials >= most || t.Failed() {
			t.Fatalf("no overlap in %d trials: the trials would not see one", trials)
		}
	}
}

func worst(all []outcome) time.Duration {
	if len(all) == 0 {
		return 0
	}
	return all[0].margin.Round(time.Millisecond)
}
