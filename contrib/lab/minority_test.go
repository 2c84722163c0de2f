//go:build lab

// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package lab_test

import (
	"errors"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/quorumd/quorumd/contrib/lab"
)

// TestAMinorityWithStaleReportsOfADeadVoterRemovesNoVoter cuts the power of a follower, and waits until both other
// voters' hosts report it as dead. Before the grace period is over, the other follower, the standby and the spare are
// cut off from the leader: their etcds keep those reports. The dead host then returns on the leader's side, where the
// other follower is reported as dead until the cut heals.
func TestAMinorityWithStaleReportsOfADeadVoterRemovesNoVoter(t *testing.T) {
	f := formedFleetRunning(t)
	f.enableRepair(func(lab.Settings) {})
	f.waitIdle()
	before, acts, ctx := f.roles(), f.mutatingSteps(), t.Context()
	leader, dead := f.leader(), f.follower(nil)
	other := f.follower(dead)
	minority := slices.DeleteFunc(slices.Clone(f.Hosts), func(h *lab.Host) bool { return h == leader || h == dead })
	f.check(dead.PowerLoss(ctx))
	f.eventually("the hosts of both other voters report "+dead.Name+" as dead", func() bool {
		return f.hasReason(leader, "VOTER_DEAD") && f.hasReason(other, "VOTER_DEAD")
	})
	output := time.Now()
	if op := f.op(); op != nil {
		t.Fatalf("the grace period is over already: %+v", op)
	}
	f.check(f.forHosts(minority, func(h *lab.Host) error {
		return errors.Join(f.Cut(ctx, h, leader), f.Cut(ctx, leader, h), f.Cut(ctx, h, dead), f.Cut(ctx, dead, h))
	}))
	tried := f.attemptedSteps(minority)
	f.check(dead.PowerOn(ctx))
	f.eventually("the leader and "+dead.Name+", which is back, accept writes", f.writes)
	f.eventually("both hosts report "+other.Name+" as dead", func() bool {
		return f.hasReason(leader, "VOTER_DEAD") && f.hasReason(dead, "VOTER_DEAD")
	})
	f.never(time.Until(output.Add(2*grace+replaceBound)), "a host acts", func() bool {
		return f.op() != nil || !maps.Equal(tried, f.attemptedSteps(minority))
	})
	f.check(f.Heal(ctx))
	f.waitIdle()
	f.verify(3, 1)
	if now := f.roles(); !maps.Equal(before, now) {
		t.Errorf("the members were %v, and are %v", before, now)
	}
	if now := f.mutatingSteps(); !slices.Equal(acts, now) {
		t.Errorf("these steps were taken: %v", now[len(acts):])
	}
}

// attemptedSteps counts the steps that the agents of hosts have taken or attempted.
func (f *fleet) attemptedSteps(hosts []*lab.Host) map[string]uint64 {
	f.t.Helper()
	n := map[string]uint64{}
	for _, h := range hosts {
		s, ok := f.status(h)
		if !ok {
			f.t.Fatalf("the agent of %s does not answer", h.Name)
		}
		n[h.Name] = s.Loop.Steps
	}
	return n
}
