// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package act

import (
	"errors"
	"testing"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/quorumd/quorumd/agent/cluster"
	"github.com/quorumd/quorumd/agent/lock"
	"github.com/quorumd/quorumd/agent/policy"
	"github.com/quorumd/quorumd/agent/record"
	"github.com/quorumd/quorumd/agent/round"
)

// rolls returns a round with the rollout in etcd and the state of etcd's downgrade job.
func (b *bench) rolls() *round.Round {
	b.t.Helper()
	r := b.permits()
	found, err := b.store.Read(b.t.Context(), cluster.Span{Start: b.keys.Rollout()})
	must(b.t, err)
	rollout, err := record.Decode[record.Rollout](found.Pairs[0].Value)
	must(b.t, err)
	r.Rollout, r.RolloutAt = &rollout, found.Pairs[0].ModRevision
	for _, s := range b.store.Answers(b.t.Context(), r.Membership.Members) {
		r.View.Cluster.Job.Enabled = s.Downgrade != ""
	}
	return r
}

func TestTheDowngradeJobIsNotedBeforeItIsEnabled(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	value, err := record.Encode(record.Rollout{ID: "r1", Work: "command", Etcd: "3.5.35", State: record.RolloutRunning})
	must(t, err)
	_, err = b.store.Txn(t.Context(), nil, clientv3.OpPut(b.keys.Rollout(), string(value)))
	must(t, err)
	enable := policy.Step{Kind: policy.StepEnableDowngrade, Version: "3.5"}
	cancel := policy.Step{Kind: policy.StepCancelDowngrade}
	if err := b.takes(b.rolls(), enable); !errors.Is(err, lock.ErrLost) {
		t.Errorf("without the lock: %v", err)
	}
	b.must(policy.Step{Kind: policy.StepTakeLock})
	stale := b.rolls()
	stale.RolloutAt--
	if err := b.takes(stale, enable); !errors.Is(err, lock.ErrTaken) || b.rolls().View.Cluster.Job.Enabled {
		t.Errorf("an operator has changed the rollout: %v", err)
	}
	wrong := policy.Step{Kind: policy.StepEnableDowngrade, Version: "3.4"}
	if err := b.takes(b.rolls(), wrong); err == nil {
		t.Error("etcd 3.6 is downgraded to 3.4")
	}
	if r := b.rolls(); !r.Rollout.DowngradeJob || r.View.Cluster.Job.Enabled {
		t.Errorf("after a call that failed, the job is noted %t, enabled %t", r.Rollout.DowngradeJob,
			r.View.Cluster.Job.Enabled)
	}
	must(t, b.takes(b.rolls(), enable))
	if r := b.rolls(); !r.Rollout.DowngradeJob || !r.View.Cluster.Job.Enabled {
		t.Errorf("the job is noted %t, enabled %t", r.Rollout.DowngradeJob, r.View.Cluster.Job.Enabled)
	}
	must(t, b.takes(b.rolls(), cancel))
	if r := b.rolls(); !r.Rollout.DowngradeJob || r.View.Cluster.Job.Enabled {
		t.Errorf("after the cancellation, the job is noted %t, enabled %t", r.Rollout.DowngradeJob,
			r.View.Cluster.Job.Enabled)
	}
	must(t, b.takes(b.rolls(), cancel)) // no job is enabled, so the cancellation clears the note
	if b.rolls().Rollout.DowngradeJob {
		t.Error("the job is still recorded")
	}
}
