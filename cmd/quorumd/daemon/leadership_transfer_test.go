// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package daemon

import (
	"context"
	"testing"
	"testing/synctest"
	"time"
)

func TestMoreThanTheRateIsHeldUpUntilItIsNotWantedAnyMore(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		told := int64(0)
		did := atMost(ctx, 2<<20, func(n int64) { told += n })
		began := time.Now()
		for _, n := range []int64{0, 1 << 20, 19 << 20} {
			did(n)
		}
		// Beyond the first 4 MiB there are 16, of which 2 go in a second.
		if took := time.Since(began); took < 7900*time.Millisecond || took > 8100*time.Millisecond || told != 20<<20 {
			t.Errorf("%d bytes took %v", told, took)
		}
		time.AfterFunc(time.Second, cancel)
		began = time.Now()
		did(100 << 20)
		if took := time.Since(began); took > 3*time.Second { // the wait that it was in, and no other
			t.Errorf("who is told to end still waits for %v", took)
		}
	})
}
