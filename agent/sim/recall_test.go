// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"
)

// Operators request interruptible maintenance in every cluster here, with all other faults.
func TestNoFaultBreaksAPromiseDuringInterruptibleMaintenance(t *testing.T) {
	t.Parallel()
	recalled := make(chan int, 3)
	t.Run("seeds", func(t *testing.T) {
		for seed := range uint64(3) {
			t.Run(fmt.Sprint(seed), func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) {
					r, err := Run(Options{Seed: seed, Faulty: 3 * time.Hour, plan: func(p *plan) {
						p.Recalls, p.LostAt, p.FaultInterval = true, 0, 4*time.Minute
					}})
					if err != nil {
						t.Fatal(err)
					}
					if r.Breach != nil {
						t.Fatalf("seed %d: %v\n%s", seed, r.Breach, r.Plan)
					}
					t.Logf("called off %d times: %s", r.Recalled, r.Plan)
					recalled <- r.Recalled
				})
			})
		}
	})
	close(recalled)
	total := 0
	for n := range recalled {
		total += n
	}
	if total == 0 && !t.Failed() {
		t.Error("no maintenance was called off")
	}
}
