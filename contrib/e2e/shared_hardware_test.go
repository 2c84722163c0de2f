// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"slices"
	"testing"
	"time"

	"github.com/quorumd/quorumd/agent/control"
	"github.com/quorumd/quorumd/agent/policy"
	"github.com/quorumd/quorumd/contrib/testbed"
	"github.com/quorumd/quorumd/health"
)

func TestAHostOnAVotersMachineDoesNotJoinUnlessAllowed(t *testing.T) {
	t.Parallel()
	w := oneVoter(t, 2, func(i int, o *testbed.HostOptions) { o.Set["host.allowSharedHardware"] = "false" })
	n1, n2 := w.hosts[0], w.hosts[1]
	untouched := n1.expectSameProcess()
	w.start(n2)
	found := func(h *host) bool {
		s, ok := h.status()
		return ok && slices.ContainsFunc(s.Health.Findings, func(f control.Finding) bool {
			return f.Code == string(health.HardwareShared)
		})
	}
	w.eventually("the new host names the voter and waits", func() bool {
		return found(n2) && n2.waitsFor(policy.HealthBad)
	})
	w.never(2*time.Second, "n2 joins, or n1 reports shared hardware", func() bool {
		return !w.has(1, 0) || n2.etcdPID() != 0 || found(n1)
	})
	n2.stop()
	n2.configure(map[string]string{"host.allowSharedHardware": "true"})
	w.start(n2)
	w.verify(1, 1)
	untouched("another host on its machine")
}
