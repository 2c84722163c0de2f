// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package daemon

import (
	"context"
	"testing"
	"testing/synctest"
	"time"
)

func TestProgressBeyondTheRateIsDelayedUntilCancelled(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		done := int64(0)
		did := throttle(ctx, 2<<20, func(n int64) { done += n })
		began := time.Now()
		for _, n := range []int64{0, 1 << 20, 19 << 20} {
			did(n)
		}
		// After the first 4 MiB, 16 MiB remain at 2 MiB per second.
		if took := time.Since(began); took < 7900*time.Millisecond || took > 8100*time.Millisecond || done != 20<<20 {
			t.Errorf("%d bytes took %v", done, took)
		}
		time.AfterFunc(time.Second, cancel)
		began = time.Now()
		did(100 << 20)
		if took := time.Since(began); took > 3*time.Second { // only the wait in progress
			t.Errorf("a cancelled job still waits for %v", took)
		}
	})
}
