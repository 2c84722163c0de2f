// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package daemon

import (
	"context"
	"fmt"
	"os/signal"
	"path/filepath"
	"syscall"

	"github.com/quorumd/quorumd/agent/config"
	"github.com/quorumd/quorumd/agent/hooks"
	"github.com/quorumd/quorumd/agent/hoststate"
	"github.com/quorumd/quorumd/systemd"
	"github.com/quorumd/quorumd/systemd/rootfile"
	"github.com/quorumd/quorumd/systemd/roothelper"
)

// helperCommand carries out one order as root; quorumd-helper@.service starts it.
const helperCommand = "serve-helper"

// ordersTo returns the client of the root helper; nil if the agent acts without it.
func ordersTo(opt Options) *roothelper.Client {
	if opt.Helper == "" {
		return nil
	}
	return &roothelper.Client{Socket: opt.Helper, Agent: agentOf(opt.Config)}
}

// startGuardOf returns the start guard of etcd's unit; nil unless etcd.runner is systemd.
func startGuardOf(conf config.Config, orders *roothelper.Client) hoststate.StartGuard {
	if conf.Etcd.Runner != config.RunnerSystemd {
		return nil
	}
	own := hoststate.StartGuardFile{Files: hoststate.HostFiles{}, Path: conf.Etcd.StartGuardFile()}
	if orders == nil {
		return own
	}
	return orderedStartGuard{own, orders}
}

// orderedStartGuard is a start guard file that every user can see, but only root can create or remove.
type orderedStartGuard struct {
	hoststate.StartGuardFile
	orders *roothelper.Client
}

// SetStartGuard orders the root helper to create or remove the file. It sends no order if the file is already in that
// state, because an order takes time and the time of a step is limited.
func (h orderedStartGuard) SetStartGuard(ctx context.Context, held bool) error {
	if is, known := h.StartGuarded(); known && is == held {
		return nil
	}
	return h.orders.SetStartGuard(ctx, held)
}

// orderServer carries out orders of the agent, as root.
type orderServer struct {
	files    rootfile.Tree
	configs  string // the directory of the configurations
	outcomes func(agent string) string
	// drive queues a systemd job for a unit.
	drive func(ctx context.Context, unit, verb string) error
}

func serveOrders() error {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	root := rootfile.Root()
	s := orderServer{
		files: root, configs: configs, outcomes: outcomesOf,
		drive: func(ctx context.Context, unit, verb string) error {
			return driveUnit(ctx, root, unit, verb)
		},
	}
	return roothelper.Serve(ctx, s.do)
}

// do carries out an order that package roothelper has checked. Only root's configuration selects the units and files.
func (s orderServer) do(ctx context.Context, o roothelper.Request) error {
	conf, err := trustedConfig(s.files, s.configs, o.Agent)
	if err != nil {
		return fmt.Errorf("cannot carry out %q: %w", o.Word, err)
	}
	mayDo := conf.Etcd.Runner == config.RunnerSystemd || conf.Etcd.Runner == config.RunnerExternal &&
		// other orders need a unit, which an external etcd does not have
		(o.Word == roothelper.SetEnvironment || o.Word == roothelper.RunHooks)
	if !mayDo {
		return fmt.Errorf("cannot carry out %q: etcd.runner in %s.yaml is not systemd", o.Word, o.Agent)
	}
	// LetGo is allowed in every mode: without the start guard, etcd starts as it does without quorumd
	if o.Word != roothelper.LetGo {
		if err := checkManages(conf, o.Agent); err != nil {
			return fmt.Errorf("cannot carry out %q: %w", o.Word, err)
		}
	}
	switch o.Word {
	case roothelper.SetEnvironment:
		return s.setEnvironment(conf, *o.Initial, o.Group)
	case roothelper.HoldBack:
		return s.files.Write(conf.Etcd.StartGuardFile(), []byte(hoststate.HoldText), 0o644)
	case roothelper.LetGo:
		return s.files.Remove(conf.Etcd.StartGuardFile())
	case roothelper.Start, roothelper.Stop, roothelper.Restart:
		return s.drive(ctx, conf.Etcd.Unit, o.Word)
	case roothelper.RunHooks:
		return s.runHooks(ctx, o.Agent, *o.Hooks)
	}
	return fmt.Errorf("cannot carry out %q: unknown order", o.Word)
}

// checkManages returns an error unless the mode in root's configuration is manage. The agent's own mode does not count,
// because a compromised agent may claim anything.
func checkManages(conf config.Config, agent string) error {
	if conf.Mode == config.ModeManage {
		return nil
	}
	return fmt.Errorf("%w: mode is %s in /etc/quorumd/%s.yaml, so quorumd changes nothing on this host → set mode: "+
		"manage there, then reload quorumd", systemd.ErrNotPermitted, conf.Mode, agent)
}

// runHooks records the request in a directory that only root can write, and starts the unit that runs the programs.
func (s orderServer) runHooks(ctx context.Context, name string, h roothelper.Hooks) error {
	dir := s.outcomes(name)
	if err := makeOutcomes(dir); err != nil {
		return fmt.Errorf("cannot record the request for hooks: %w", err)
	}
	err := hooks.WriteRequest(dir, hooks.Run{
		When: h.When, ID: h.ID, Program: h.Program, Until: h.Until, Work: h.Work,
		Reason: h.Reason, By: h.By,
	})
	if err != nil {
		return fmt.Errorf("cannot record the request for hooks: %w", err)
	}
	return s.drive(ctx, hooksUnit(name, h.When), roothelper.Start)
}

// driveUnit queues a systemd job for a unit. It starts and restarts only a unit whose file no user other than root can
// write. Another job for the unit, such as that of a shutdown, may replace this job.
func driveUnit(ctx context.Context, files rootfile.Tree, name, verb string) error {
	unit, err := systemd.NewService(systemd.Options{Unit: name})
	if err != nil {
		return err
	}
	defer unit.Close()           //nolint:errcheck // the job does not depend on the connection
	if verb == roothelper.Stop { // stop a unit even if its file was removed
		return unit.Stop(ctx)
	}
	path, err := unit.File(ctx)
	if err == nil {
		path, err = filepath.EvalSymlinks(path) // systemd also followed symbolic links when it loaded the unit
	}
	if err == nil {
		err = files.Check(path)
	}
	if err != nil {
		return fmt.Errorf("cannot %s %s: %w", verb, name, err)
	}
	if verb == roothelper.Restart {
		return unit.Restart(ctx)
	}
	return unit.Start(ctx)
}
