// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package act

import (
	"context"
	"errors"
	"fmt"

	"github.com/quorumd/quorumd/agent/lock"
	"github.com/quorumd/quorumd/agent/record"
)

// errNoDowngrade is returned if Options.Maintenance is nil.
var errNoDowngrade = errors.New("this agent cannot enable or cancel etcd's downgrade job")

// enableDowngrade enables etcd's downgrade job for the rollout. It first notes the job in the rollout's record, so that
// the job is cancelled even if this agent dies.
func (a *Actor) enableDowngrade(ctx context.Context, t *task) error {
	if a.opt.Maintenance == nil {
		return errNoDowngrade
	}
	if err := a.noteDowngradeJob(ctx, t, true); err != nil {
		return err
	}
	if !a.lock.MayAct() {
		return lock.ErrLost
	}
	return a.opt.Maintenance.EnableDowngrade(ctx, t.step.Version)
}

// cancelDowngrade cancels etcd's downgrade job. If no job was enabled, it records that a job enabled later does not
// belong to the rollout.
func (a *Actor) cancelDowngrade(ctx context.Context, t *task) error {
	if a.opt.Maintenance == nil {
		return errNoDowngrade
	}
	if err := a.opt.Maintenance.CancelDowngrade(ctx); err != nil {
		return err
	}
	if t.on.View.Cluster.Job.Enabled {
		return nil
	}
	return a.noteDowngradeJob(ctx, t, false)
}

// noteDowngradeJob writes to the rollout's record whether quorumd has enabled the downgrade job. It returns an error if
// the record has changed since it was read, because an operator may have aborted the rollout.
func (a *Actor) noteDowngradeJob(ctx context.Context, t *task, enabled bool) error {
	if t.on.Rollout == nil {
		return errors.New("cannot record the downgrade job: there is no rollout")
	}
	next := *t.on.Rollout
	next.DowngradeJob = enabled
	value, err := record.Encode(next)
	if err != nil {
		return fmt.Errorf("cannot record the downgrade job: %w", err)
	}
	return a.lock.Write(ctx, lock.Extra{Key: a.keys.Rollout(), At: t.on.RolloutAt, Value: value})
}
