// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package daemon

import (
	"context"
	"errors"
	"fmt"
	"os/signal"
	"path/filepath"
	"strings"
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

// ordersTo returns the client of that service; nil if there is none.
func ordersTo(opt Options) *roothelper.Client {
	if opt.Helper == "" {
		return nil
	}
	return &roothelper.Client{Socket: opt.Helper, Agent: agentOf(opt.Config)}
}

// startGuardOf returns the start guard of etcd's unit; nil if the agent's own child runs etcd.
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

// orderedStartGuard is a file that every user may see and only root makes.
type orderedStartGuard struct {
	hoststate.StartGuardFile
	orders *roothelper.Client
}

// SetStartGuard orders root to make the file, or to remove it, unless it is already so: an order takes time, and a step
// has little.
func (h orderedStartGuard) SetStartGuard(ctx context.Context, held bool) error {
	if is, known := h.StartGuarded(); known && is == held {
		return nil
	}
	return h.orders.SetStartGuard(ctx, held)
}

// steering carries out orders, as root.
type steering struct {
	files    rootfile.Tree
	configs  string // the directory of the configurations
	outcomes func(agent string) string
	// drive queues a job for the unit that root names.
	drive func(ctx context.Context, unit, verb string) error
}

func serveOrders() error {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	root := rootfile.Root()
	s := steering{
		files: root, configs: configs, outcomes: outcomesOf,
		drive: func(ctx context.Context, unit, verb string) error {
			return driveUnit(ctx, root, unit, verb)
		},
	}
	return roothelper.Serve(ctx, s.do)
}

// do carries out a checked order. The configuration of root names what it acts on.
func (s steering) do(ctx context.Context, o roothelper.Request) error {
	conf, err := trustedConfig(s.files, s.configs, o.Agent)
	if err != nil {
		return fmt.Errorf("cannot carry out %q: %w", o.Word, err)
	}
	mayDo := conf.Etcd.Runner == config.RunnerSystemd || conf.Etcd.Runner == config.RunnerExternal &&
		(o.Word == roothelper.SetEnvironment || o.Word == roothelper.RunHooks) // others run it; it has no unit
	if !mayDo {
		return fmt.Errorf("cannot carry out %q: etcd.runner of %s is not systemd", o.Word, o.Agent)
	}
	if o.Word != roothelper.LetGo { // without the start guard etcd boots as it would without quorumd
		if err := checkManages(conf, o.Agent); err != nil {
			return fmt.Errorf("cannot carry out %q: %w", o.Word, err)
		}
	}
	switch o.Word {
	case roothelper.SetEnvironment:
		return s.setEnvironment(conf, *o.Initial)
	case roothelper.HoldBack:
		return s.files.Write(conf.Etcd.StartGuardFile(), []byte(hoststate.HoldText), 0o644)
	case roothelper.LetGo:
		return s.files.Remove(conf.Etcd.StartGuardFile())
	case roothelper.Start, roothelper.Stop, roothelper.Restart:
		return s.drive(ctx, conf.Etcd.Unit, o.Word)
	case roothelper.RunHooks:
		return s.runHooks(ctx, o.Agent, *o.Hooks)
	}
	return fmt.Errorf("cannot carry out %q: it is no order", o.Word)
}

// checkManages returns an error unless root's configuration lets quorumd change this host. The agent's own idea of its
// mode does not count: a compromised agent may claim anything.
func checkManages(conf config.Config, agent string) error {
	if conf.Mode == config.ModeManage {
		return nil
	}
	return fmt.Errorf("%w: mode is %s in /etc/quorumd/%s.yaml, so quorumd changes nothing on this host → set mode: "+
		"manage there, then restart quorumd", systemd.ErrNotPermitted, conf.Mode, agent)
}

// setEnvironment writes what the configuration says; from the agent it takes only the initial cluster.
func (s steering) setEnvironment(conf config.Config, i roothelper.Initial) error {
	vars := conf.Environment(i.Cluster, i.Token)
	switch {
	case !i.Names(conf.Alone()):
		return fmt.Errorf("cannot write the environment: %s is not what this host is in the initial cluster",
			conf.Alone())
	case roothelper.Digest(vars) != i.Digest:
		return errors.New("cannot write the environment: the configuration has changed since quorumd has read it: " +
			"systemctl reload quorumd")
	}
	return s.writeEnvironment(conf, vars)
}

func (s steering) writeEnvironment(conf config.Config, vars map[string]string) error {
	for name := range vars {
		if !strings.HasPrefix(name, "ETCD_") {
			return fmt.Errorf("cannot write the environment: %s is not etcd's", name)
		}
	}
	text, err := systemd.FormatEnvironment(vars)
	if err == nil {
		err = s.files.Write(conf.Etcd.EnvironmentFile, text, 0o600) // it may hold a password; systemd reads it as root
	}
	if err != nil {
		return fmt.Errorf("cannot write the environment: %w", err)
	}
	return nil
}

// runHooks records what to run where only root writes, and starts the unit that runs it.
func (s steering) runHooks(ctx context.Context, name string, h roothelper.Hooks) error {
	dir := s.outcomes(name)
	if err := makeOutcomes(dir); err != nil {
		return fmt.Errorf("cannot note what to run: %w", err)
	}
	err := hooks.WriteRequest(dir, hooks.Run{
		When: h.When, ID: h.ID, Program: h.Program, Until: h.Until, Work: h.Work,
		Reason: h.Reason, By: h.By,
	})
	if err != nil {
		return fmt.Errorf("cannot note what to run: %w", err)
	}
	return s.drive(ctx, hooksUnit(name, h.When), roothelper.Start)
}

// driveUnit has systemd queue a job that any other job may replace, above all a shutdown's, for a unit that was loaded
// from a file of root's.
func driveUnit(ctx context.Context, files rootfile.Tree, name, verb string) error {
	unit, err := systemd.NewService(systemd.Options{Unit: name})
	if err != nil {
		return err
	}
	defer unit.Close()           //nolint:errcheck // the job runs on
	if verb == roothelper.Stop { // also for a unit whose file is gone
		return unit.Stop(ctx)
	}
	path, err := unit.File(ctx)
	if err == nil {
		path, err = filepath.EvalSymlinks(path) // systemd has followed them already
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
