// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package act

import (
	"context"
	"errors"

	"github.com/quorumd/quorumd/agent/policy"
	"github.com/quorumd/quorumd/agent/record"
)

// beginJoin records the operation.
func (a *Actor) beginJoin(ctx context.Context, t *task) error {
	a.opt.ForgetBinary() // a replaced binary must not start before its version is known
	if err := a.opt.Files.SetStandby(0); err != nil {
		return err
	}
	c := a.opt.Config
	return a.lock.Begin(ctx, record.Op{
		Kind: policy.KindJoin, Host: c.Host.ID, HostName: c.Host.Name, Target: string(t.step.Target),
		Phase: string(policy.PhaseBegun), BootID: a.opt.BootID, PeerURL: c.Etcd.PeerURL,
		Started: t.on.Wall, Clock: t.on.At, By: "policy",
	})
}

func (a *Actor) moveDataAside(ctx context.Context, _ *task) error {
	moved, err := a.opt.MoveDataAside(ctx)
	a.opt.ForgetData()
	if len(moved) > 0 {
		a.log.Info("moved old etcd data aside", "to", moved)
	}
	return err
}

func (a *Actor) addLearner(ctx context.Context, _ *task) error {
	_, err := a.opt.Etcd.AddLearner(ctx, a.opt.Config.Etcd.PeerURL)
	return err
}

// promote asks the leader to promote the learner, because only the leader tracks the learner's progress.
func (a *Actor) promote(ctx context.Context, t *task) error {
	for id, s := range t.on.Statuses {
		if s.Err != nil || s.Leader != id {
			continue
		}
		if m, ok := t.on.Membership.ByID(id); ok && len(m.ClientURLs) > 0 {
			return a.opt.Etcd.Promote(ctx, t.step.MemberID, m.ClientURLs[0])
		}
	}
	return errors.New("cannot promote the learner: no member with a client URL reports itself as leader")
}

func (a *Actor) promotionSent(*task) { a.did.Promoted = a.now() }

func (a *Actor) removeLearner(ctx context.Context, t *task) error {
	return a.opt.Etcd.RemoveLearner(ctx, t.step.MemberID)
}

func (a *Actor) finishBootstrap(context.Context, *task) error { return a.opt.Files.EndBootstrap() }
