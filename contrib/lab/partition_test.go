//go:build lab

// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package lab_test

import (
	"context"
	"testing"
	"time"

	"github.com/quorumd/quorumd/agent/policy"
	"github.com/quorumd/quorumd/contrib/lab"
)

// cut is a way to cut a host off from the others. The test can still reach it.
type cut struct {
	name string
	do   func(ctx context.Context, h *lab.Host) error
}

func (f *fleet) cuts() []cut {
	return []cut{{"cannot send", f.Mute}, {"cannot receive", f.Deafen}, {"is cut off", f.Isolate}}
}

// TestNoHostActsWhileAVoterIsCutOff applies every cut to the leader and to a follower: writes continue without the
// host, no host takes a step, and the state is the same as before when the host is back.
func TestNoHostActsWhileAVoterIsCutOff(t *testing.T) {
	f := formedFleetRunning(t)
	members := f.roles()
	steps := len(f.mutatingSteps())
	for _, role := range []string{"leader", "follower"} {
		for _, c := range f.cuts() {
			h := f.leader()
			if role == "follower" {
				h = f.follower(nil)
			}
			f.check(c.do(t.Context(), h))
			f.eventually("writes continue while "+h.Name+", the "+role+", "+c.name, f.writes)
			f.never(4*time.Second, "a host acts", func() bool { return f.op() != nil })
			f.check(f.Heal(t.Context()))
			f.eventually("all are idle again", func() bool {
				for _, h := range f.Hosts {
					if !f.hasReason(h, "IDLE") && !f.hasReason(h, "TARGET_MET") {
						return false
					}
				}
				return true
			})
		}
	}
	f.verify(3, 1)
	if now := f.mutatingSteps(); len(now) != steps {
		t.Errorf("these steps were taken: %v", now[steps:])
	}
	if now := f.roles(); len(now) != len(members) {
		t.Errorf("the members were %v, and are %v", members, now)
	}
}

// TestACutOffJoinerBlocksNoOtherHostForGood makes every cut on the joining host, which holds the lock. The host loses
// the lock, and no other operation begins. If it returns, it completes its join; if it stays away, the others remove
// its learner, and it joins again later.
func TestACutOffJoinerBlocksNoOtherHostForGood(t *testing.T) {
	f := formedFleetRunning(t)
	f.killed = true // the host may be unable to record the beginning of its operation
	for _, c := range f.cuts() {
		f.removeStandby()
		joiner := f.waitForPhase(policy.PhaseStarted)
		f.check(c.do(t.Context(), joiner))
		f.eventually(joiner.Name+", which joins and "+c.name+", loses the lock", func() bool {
			return f.absent(f.keys().Lock())
		})
		if op := f.op(); op == nil || op.HostName != joiner.Name {
			t.Errorf("the operation of %s was not kept for it: %+v", joiner.Name, op)
		}
		if c.name == "is cut off" { // the host stays cut off
			f.eventually("the others end the join of "+joiner.Name, func() bool {
				op := f.op()
				return op == nil || op.HostName != joiner.Name
			})
		}
		f.check(f.Heal(t.Context()))
		f.verify(3, 1)
	}
}

// writes reports whether the cluster accepts a write.
func (f *fleet) writes() bool {
	client, err := f.client()
	if err != nil {
		return false
	}
	ctx, cancel := context.WithTimeout(context.Background(), callTimeout)
	defer cancel()
	_, err = client.Put(ctx, "written", "")
	return err == nil
}
