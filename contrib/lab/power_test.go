//go:build lab

// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package lab_test

import (
	"context"
	"errors"
	"maps"
	"testing"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/quorumd/quorumd/agent/policy"
	"github.com/quorumd/quorumd/agent/record"
	"github.com/quorumd/quorumd/contrib/lab"
)

func TestAHostLosesPowerAtEveryPhaseOfAJoin(t *testing.T) {
	f := formedFleetRunning(t)
	f.killed = true
	phases := []struct {
		phase  policy.OpPhase
		victim string
	}{
		{policy.PhaseBegun, "joiner"},
		{policy.PhaseAdded, "joiner"},
		{policy.PhaseStarted, "joiner"},
		{policy.PhaseAdded, "leader"},
		{policy.PhaseStarted, "follower"},
		{policy.PhasePromoted, "joiner"},
	}
	for _, p := range phases {
		if p.phase == policy.PhasePromoted {
			f.remove(f.follower(nil)) // the standby replaces it
		} else {
			f.removeStandby()
		}
		joiner := f.waitForPhase(p.phase)
		victim := joiner
		switch p.victim {
		case "leader":
			victim = f.leader()
		case "follower":
			victim = f.follower(joiner)
		}
		f.check(victim.PowerLoss(t.Context()))
		t.Logf("%s, the %s, has lost power when the join of %s was %s", victim.Name, p.victim, joiner.Name, p.phase)
		f.never(3*time.Second, "a second operation begins", func() bool {
			op := f.op()
			return op != nil && op.HostName != joiner.Name
		})
		f.check(victim.PowerOn(t.Context()))
		f.verify(3, 1)
	}
}

func TestAllHostsLosePowerAtOnce(t *testing.T) {
	f := formedFleetRunning(t)
	f.killed = true
	before := f.roles()
	f.check(f.Each(func(h *lab.Host) error { return h.PowerLoss(t.Context()) }))
	f.check(f.Each(func(h *lab.Host) error { return h.PowerOn(t.Context()) }))
	f.verify(3, 1)
	if after := f.roles(); !maps.Equal(before, after) {
		t.Errorf("the members were %v, and are %v", before, after)
	}

	f.removeStandby()
	joiner := f.waitForPhase(policy.PhaseStarted)
	f.check(f.Each(func(h *lab.Host) error { return h.PowerLoss(t.Context()) }))
	t.Logf("all have lost power in the middle of the join of %s", joiner.Name)
	f.check(f.Each(func(h *lab.Host) error { return h.PowerOn(t.Context()) }))
	f.verify(3, 1)
	f.eventually("every agent is back", func() bool {
		return len(f.role(policy.RoleVoter)) == 3 && len(f.role(policy.RoleStandby)) == 1 &&
			len(f.role(policy.RoleSpare)) == 1
	})
}

// roles returns the name of every member, and whether it is a learner, by member ID.
func (f *fleet) roles() map[uint64]string {
	f.t.Helper()
	roles := map[uint64]string{}
	for _, m := range f.members() {
		roles[m.ID] = m.Name
		if m.IsLearner {
			roles[m.ID] += ", a learner"
		}
	}
	return roles
}

// removeStandby removes the standby's member by hand, so that some host joins.
func (f *fleet) removeStandby() {
	f.t.Helper()
	for _, m := range f.members() {
		if m.IsLearner {
			f.removeMember(m.ID)
			return
		}
	}
	f.t.Fatal("there is no standby")
}

// remove removes a host's member by hand.
func (f *fleet) remove(h *lab.Host) {
	f.t.Helper()
	for _, m := range f.members() {
		if m.Name == h.Name {
			f.removeMember(m.ID)
			return
		}
	}
	f.t.Fatalf("%s is not a member", h.Name)
}

func (f *fleet) removeMember(id uint64) {
	f.t.Helper()
	f.eventually("a member is removed", func() bool { // etcd refuses for a while after a voter has returned
		client, err := f.client()
		if err != nil {
			return false
		}
		ctx, cancel := context.WithTimeout(f.t.Context(), callTimeout)
		defer cancel()
		answer, err := client.Get(ctx, "/")
		if err != nil {
			return false
		}
		f.removed = answer.Header.Revision
		_, err = client.MemberRemove(ctx, id)
		return err == nil || errors.Is(err, rpctypes.ErrMemberNotFound)
	})
}

// waitForPhase waits until an operation that began after the last removal is in that phase, however short the phase is.
// It returns the operation's host.
func (f *fleet) waitForPhase(phase policy.OpPhase) *lab.Host {
	f.t.Helper()
	client, err := f.client()
	f.check(err)
	ctx, cancel := context.WithTimeout(f.t.Context(), bound)
	defer cancel()
	began := time.Now()
	for answer := range client.Watch(ctx, f.keys().Op(), clientv3.WithRev(f.removed+1)) {
		f.check(answer.Err())
		for _, e := range answer.Events {
			if e.Type == clientv3.EventTypeDelete {
				continue
			}
			op, err := record.Decode[record.Op](e.Kv.Value)
			f.check(err)
			if op.Phase == string(phase) {
				f.t.Logf("%6.1f s: the join of %s is %s", time.Since(began).Seconds(), op.HostName, phase)
				return f.host(op.HostName)
			}
		}
	}
	f.t.Fatalf("no join is %s in %v", phase, bound)
	return nil
}

// host returns the host of that name.
func (f *fleet) host(name string) *lab.Host {
	f.t.Helper()
	for _, h := range f.Hosts {
		if h.Name == name {
			return h
		}
	}
	f.t.Fatalf("there is no host %s", name)
	return nil
}

// follower returns a voter that does not lead, other than the excluded host.
func (f *fleet) follower(except *lab.Host) *lab.Host {
	f.t.Helper()
	leader := f.leader()
	for _, h := range f.role(policy.RoleVoter) {
		if h != leader && h != except {
			return h
		}
	}
	f.t.Fatal("there is no follower")
	return nil
}
