// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

//go:build long

package e2e

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/quorumd/quorumd/agent/control"
	"github.com/quorumd/quorumd/agent/policy"
	"github.com/quorumd/quorumd/agent/record"
)

func TestAHostThatDoesNotComeBackBlocksARolloutUntilItIsReleased(t *testing.T) {
	t.Parallel()
	w := threeIdleVoters(t)
	w.lead(w.hosts[0])
	first, next := w.hosts[1], w.hosts[2] // followers, by name
	first.breakEtcd(`echo "cannot open the WAL" >&2; exit 1`)
	ctx, cancel := context.WithTimeout(t.Context(), bound)
	defer cancel()
	if _, err := next.Client.StartRollout(ctx, control.RolloutRequest{
		Work:   policy.WorkRestart,
		Reason: "a test",
	}); err != nil {
		t.Fatal(err)
	}
	w.eventually("etcd of n2 has ended, and does not start", func() bool {
		s, ok := first.status()
		return ok && s.Unit.State == string(policy.UnitFailed)
	})
	before := next.etcdPID()
	w.never(5*time.Second, "another host's operation begins", func() bool {
		s, ok := next.status()
		return ok && (s.Op == nil || s.Op.HostName != "n2" || s.Rollout == nil ||
			s.Rollout.State != record.RolloutRunning)
	})
	if _, err := next.Client.ReleaseOp(ctx, control.ReleaseRequest{Force: true, Reason: "n2 is gone"}); err != nil {
		t.Fatal(err)
	}
	w.eventually("the rollout has stopped", func() bool {
		s, ok := next.status()
		return ok && s.Rollout != nil && s.Rollout.State == record.RolloutStopped &&
			strings.Contains(s.Rollout.Text, "n2 was released by")
	})
	first.repairEtcd()
	w.eventually("n2 is back", first.etcdRuns)
	if now := next.etcdPID(); now != before {
		t.Errorf("etcd of n3 was %d, and is %d: it was restarted", before, now)
	}
	w.verify(3, 0)
}
