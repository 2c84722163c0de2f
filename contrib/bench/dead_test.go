// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"testing"
	"time"

	"github.com/quorumd/quorumd/agent/config"
	"github.com/quorumd/quorumd/agent/policy"
)

func TestDefaultTimesReplaceADeadVoterAtOnceOrWithinAPromotionWindow(t *testing.T) {
	t.Parallel()
	c, err := config.Parse("quorumd.yaml", config.Default())
	if err != nil {
		t.Fatal(err)
	}
	for role, want := range map[policy.Role]time.Duration{
		policy.RoleStandby: 15 * time.Second,
		// 15 s until all report it as dead, 6 s to settle, 7 s for etcd to publish, 2 s until the next round, 60 s of
		// watching, 2 s to promote
		policy.RoleSpare: 92 * time.Second,
	} {
		if got := allowed(c.Timing, role); got != want {
			t.Errorf("%s: %s, want %s", role, got, want)
		}
	}
}
