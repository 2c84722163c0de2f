// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package act

import (
	"errors"
	"testing"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"

	"github.com/quorumd/quorumd/agent/cluster"
	"github.com/quorumd/quorumd/agent/lock"
	"github.com/quorumd/quorumd/agent/policy"
	"github.com/quorumd/quorumd/agent/round"
	"github.com/quorumd/quorumd/contrib/testbed"
)

// raiseNoSpace activates the NOSPACE alarm: from now on, etcd rejects every put.
func (b *bench) raiseNoSpace() {
	b.t.Helper()
	client, err := b.member.Client()
	must(b.t, err)
	defer client.Close()
	_, err = pb.NewMaintenanceClient(client.ActiveConnection()).Alarm(b.t.Context(), &pb.AlarmRequest{
		Action: pb.AlarmRequest_ACTIVATE, Alarm: pb.AlarmType_NOSPACE, MemberID: 1,
	})
	must(b.t, err)
}

// permits returns a round with the permits in etcd, the members, and what the actor has done.
func (b *bench) permits() *round.Round {
	b.t.Helper()
	r := b.seen()
	for n := 1; n <= policy.MaxPermits; n++ {
		found, err := b.store.Read(b.t.Context(), cluster.Span{Start: b.keys.Permit(n)})
		must(b.t, err)
		for _, pair := range found.Pairs {
			r.Permits = append(r.Permits, round.Permit{Number: n, At: pair.ModRevision})
		}
	}
	var err error
	r.Membership, err = b.store.Members(b.t.Context())
	must(b.t, err)
	r.Did = b.Did()
	return r
}

// takes makes the actor take the step s in round r, and returns the error of the step.
func (b *bench) takes(r *round.Round, s policy.Step) error {
	b.t.Helper()
	r.Decision.Step = s
	done, ended := b.Act(b.t.Context(), r)
	if !ended {
		b.t.Fatalf("%s has not ended", s.Kind)
	}
	return done.Err
}

func TestAPermitIsClaimedOnceAlthoughEtcdRejectsWrites(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	must(t, b.takes(b.permits(), policy.Step{Kind: policy.StepWritePermits}))
	must(t, b.takes(b.permits(), policy.Step{Kind: policy.StepWritePermits})) // a second time changes nothing
	b.raiseNoSpace()
	seen := b.permits()
	if len(seen.Permits) != policy.MaxPermits {
		t.Fatalf("the permits are %v", seen.Permits)
	}
	disarm := policy.Step{Kind: policy.StepDisarmNoSpace}
	if err := b.takes(b.permits(), disarm); !errors.Is(err, lock.ErrLost) {
		t.Errorf("without a permit: %v", err)
	}
	must(t, b.takes(seen, policy.Step{Kind: policy.StepClaimPermit}))
	if err := b.takes(seen, policy.Step{Kind: policy.StepClaimPermit}); !errors.Is(err, errPermitTaken) {
		t.Errorf("the same permit was claimed twice: %v", err)
	}
	if left := b.permits().Permits; len(left) != policy.MaxPermits-1 || left[0].Number != 2 {
		t.Errorf("the permits left are %v", left)
	}
	must(t, b.takes(b.permits(), disarm))
	must(t, b.takes(b.permits(), policy.Step{Kind: policy.StepWritePermits})) // etcd accepts puts again
}

func TestNoPermitIsClaimedOrUsedWhileAnotherAgentHoldsTheLock(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	must(t, b.takes(b.permits(), policy.Step{Kind: policy.StepWritePermits}))
	must(t, b.takes(b.permits(), policy.Step{Kind: policy.StepClaimPermit}))
	other := lock.New(b.store, lock.Options{
		Keys: b.keys, Host: "1", Name: "n1", TTL: time.Minute, Now: b.opt.Now, Wall: b.opt.Wall,
	})
	must(t, other.Take(t.Context(), 0))
	b.raiseNoSpace()
	for _, kind := range []policy.StepKind{policy.StepDisarmNoSpace, policy.StepDefragmentOnline, policy.StepCompact} {
		if err := b.takes(b.permits(), policy.Step{Kind: kind, Revision: 1}); !errors.Is(err, lock.ErrLost) {
			t.Errorf("%s with a permit, but another agent holds the lock: %v", kind, err)
		}
	}
	if err := b.takes(b.permits(), policy.Step{Kind: policy.StepClaimPermit}); !errors.Is(err, errPermitTaken) {
		t.Errorf("a permit is claimed although another agent holds the lock: %v", err)
	}
}

func TestAnOnlineDefragmentationRunsInTheBackground(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.must(policy.Step{Kind: policy.StepTakeLock})
	r := b.permits()
	id := r.Membership.Members[0].ID
	must(t, b.takes(r, policy.Step{Kind: policy.StepDefragmentOnline, MemberID: id}))
	testbed.Eventually(t, 30*time.Second, "the defragmentation ends", func() bool {
		d := b.Did()
		return d.Defragmenting == 0 && len(d.Defragmented) == 1
	})
	if d := b.Did().Defragmented[0]; d.MemberID != id || d.Err != nil {
		t.Errorf("it ended as %+v", d)
	}
	if err := b.takes(b.permits(), policy.Step{Kind: policy.StepDefragmentOnline, MemberID: 1}); err == nil {
		t.Error("a member that is not in the list is defragmented")
	}
}
