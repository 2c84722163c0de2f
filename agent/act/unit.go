// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package act

import (
	"context"
	"fmt"

	"github.com/quorumd/quorumd/agent/cluster"
	"github.com/quorumd/quorumd/agent/policy"
)

func (a *Actor) writeEnvironment(ctx context.Context, t *task) error {
	return a.opt.Unit.SetEnvironment(ctx, t.on.Environment)
}

// writesEnvironment reports whether a step writes the environment, alone or before it stops etcd.
func writesEnvironment(s policy.Step) bool { return s.Kind == policy.StepWriteEnv || s.WriteEnv }

func (a *Actor) environmentBegun(t *task) {
	if writesEnvironment(t.step) {
		a.did.EnvironmentBegun = t.on.Environment
	}
}

func (a *Actor) environmentWritten(t *task) {
	if writesEnvironment(t.step) {
		a.did.Environment = t.on.Environment
	}
}

// beforeStart returns an error if a new cluster must not be created here. Otherwise it records the outcome of a command
// on disk, so that a reboot cannot erase it.
func (a *Actor) beforeStart(ctx context.Context, t *task) error {
	if err := a.alone(ctx, t); err != nil {
		return err
	}
	a.noteCommand(t.on)
	return nil
}

func (a *Actor) startUnit(ctx context.Context, _ *task) error {
	a.opt.ForgetData()
	if err := a.opt.Unit.Start(ctx); err != nil {
		return err
	}
	return a.opt.Files.EtcdStarted()
}

func (a *Actor) unitStarted(*task) { a.did.Started = a.now() }

func (a *Actor) stopUnit(ctx context.Context, _ *task) error { return a.opt.Unit.Stop(ctx) }

// alone returns an error if the start of etcd would create a new cluster although an existing cluster may run at one of
// the other endpoints.
func (a *Actor) alone(ctx context.Context, t *task) error {
	if !policy.MakesNewCluster(t.on.View) {
		return nil
	}
	others, missing := cluster.Others(ctx, a.opt.Etcd, a.opt.Config.Etcd.ClientURL)
	if r := policy.AgainstAutomaticBootstrap(others, missing, cluster.Refuses); r != nil {
		return fmt.Errorf("cannot bootstrap: %s; %s", r.Text, r.Hint)
	}
	return nil
}
