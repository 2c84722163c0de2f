// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package act

import (
	"context"
	"fmt"

	"github.com/quorumd/quorumd/agent/cluster"
)

func (a *Actor) writeEnvironment(ctx context.Context, t *task) error {
	if err := a.alone(ctx, t); err != nil {
		return err
	}
	return a.opt.Unit.SetEnvironment(ctx, t.on.Environment)
}

func (a *Actor) environmentWritten(t *task) { a.did.Environment = t.on.Environment }

func (a *Actor) startUnit(ctx context.Context, t *task) error {
	if err := a.alone(ctx, t); err != nil {
		return err
	}
	a.opt.ForgetData()
	a.noteCommand(t.on) // before a reboot can clear it
	if err := a.opt.Files.SetHeld(ctx, false); err != nil {
		return err
	}
	if err := a.opt.Unit.Start(ctx); err != nil {
		return err
	}
	return a.opt.Files.EtcdStarted()
}

func (a *Actor) unitStarted(*task) { a.did.Started = a.now() }

func (a *Actor) stopUnit(ctx context.Context, _ *task) error { return a.opt.Unit.Stop(ctx) }

// alone makes sure, when a new cluster is made of this host, that no other answers: it was so when the operator asked.
func (a *Actor) alone(ctx context.Context, t *task) error {
	if t.on.Bootstrap == nil || t.on.View.Cluster.Listed {
		return nil
	}
	c := a.opt.Config
	if err := cluster.Silent(ctx, a.opt.Etcd.Diagnose, c.Cluster.Endpoints, c.Etcd.ClientURL); err != nil {
		return fmt.Errorf("cannot bootstrap: %w", err)
	}
	return nil
}
