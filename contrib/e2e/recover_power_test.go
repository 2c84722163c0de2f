// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

//go:build nightly

package e2e

import (
	"strings"
	"syscall"
	"testing"
)

// The agent is killed with all that it has started, and with etcd where that runs: nothing of the host goes on, as when
// its power goes.
func TestARecoveryIsBroughtToItsEndThoughTheWholeHostWasKilledAnywhereInIt(t *testing.T) {
	t.Parallel()
	for _, when := range []string{"before ", "after "} {
		t.Run(strings.TrimSpace(when)+" each step", func(t *testing.T) {
			t.Parallel()
			struckInRecovery(t, when, func(n1 *host, at string) {
				n1.strike(at, agentOnly)
				if pid, err := n1.EtcdPID(t.Context()); err == nil && pid != 0 {
					n1.signalEtcd(syscall.SIGKILL)
				}
			})
		})
	}
}
