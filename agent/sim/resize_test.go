// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"
)

// Every cluster is resized here, with all other faults.
func TestNoFaultBreaksAPromiseWhileTheClusterIsResized(t *testing.T) {
	t.Parallel()
	for seed := range uint64(3) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				r, err := Run(Options{Seed: seed, Faulty: 2 * time.Hour, plan: func(p *plan) {
					p.Resizes, p.LostAt, p.FaultInterval = true, 0, 4*time.Minute
				}})
				if err != nil {
					t.Fatal(err)
				}
				if r.Breach != nil {
					t.Fatalf("seed %d: %v\n%s", seed, r.Breach, r.Plan)
				}
				t.Logf("resized %d times, %d retirements, %d of hosts lost in maintenance, %d changes: %s", r.Resized,
					r.Retired, r.Lost, r.Changes, r.Plan)
			})
		})
	}
}
