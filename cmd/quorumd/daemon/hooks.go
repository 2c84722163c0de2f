// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package daemon

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/quorumd/quorumd/agent/config"
	"github.com/quorumd/quorumd/agent/defrag"
	"github.com/quorumd/quorumd/agent/hooks"
	"github.com/quorumd/quorumd/agent/journalcatalog"
	"github.com/quorumd/quorumd/systemd"
	"github.com/quorumd/quorumd/systemd/rootfile"
	"github.com/quorumd/quorumd/systemd/roothelper"
)

const (
	hooksCommand = "hooks" // runs the operator's programs; quorumd-hooks@.service uses it, too
	// unitOutcomes is the directory of the requests to quorumd-hooks@.service and of their outcomes. Only root may
	// write to it.
	unitOutcomes = "/run/quorumd-hooks"
)

// openHooks returns the agent's launcher of hooks. With orders, a systemd service runs the programs as root; otherwise
// a child of the agent runs them.
func openHooks(conf config.Config, path string, orders *roothelper.Client) (*hooks.Launcher, error) {
	if orders != nil {
		launch := func(ctx context.Context, run hooks.Run) error {
			return orders.RunHooks(ctx, roothelper.Hooks{
				When: run.When, ID: run.ID, Program: run.Program, Until: run.Until, Work: run.Work, Reason: run.Reason,
				By: run.By,
			})
		}
		return hooks.NewLauncher(conf.Maintenance.Hooks, outcomesOf(agentOf(path)), launch), nil
	}
	outcomes := filepath.Join(conf.Paths.Runtime, "hooks")
	if err := os.MkdirAll(outcomes, 0o755); err != nil {
		return nil, fmt.Errorf("cannot create the directory for the outcomes of hooks: %w; correct paths.runtime", err)
	}
	child := hooks.AsChild(conf.Paths.Runtime, func(when string) []string {
		return []string{self, hooksCommand, "--config", path, "--outcomes", outcomes, when}
	})
	return hooks.NewLauncher(conf.Maintenance.Hooks, outcomes, child), nil
}

// openPrograms returns the launcher of hooks, and all programs that run while etcd is stopped: the operator's, and the
// defragmentation of this host's database.
func openPrograms(conf config.Config, opt Options, orders *roothelper.Client) (
	*hooks.Launcher, *defrag.Programs, error,
) {
	launcher, err := openHooks(conf, opt.Config, orders)
	if err != nil {
		return nil, nil, err
	}
	return launcher, &defrag.Programs{
		Programs: launcher, Command: children(opt.Config, opt.RunAs), DataDir: conf.Etcd.DataDir,
		Limit: conf.Maintenance.CommandTimeout,
	}, nil
}

// hooksUnit returns the name of the unit that runs the hooks of an agent.
func hooksUnit(agent, when string) string {
	if agent == mainAgent {
		return "quorumd-hooks@" + when + ".service"
	}
	return "quorumd-hooks@" + when + ":" + agent + ".service"
}

// outcomesOf returns the directory of the service's requests and outcomes for an agent.
func outcomesOf(agent string) string { return filepath.Join(unitOutcomes, agent) }

// makeOutcomes creates the directory of the outcomes and its parent, and makes them readable by the agent regardless
// of the umask.
func makeOutcomes(dir string) error {
	return errors.Join(os.MkdirAll(dir, 0o755), os.Chmod(filepath.Dir(dir), 0o755), os.Chmod(dir, 0o755))
}

// runHooks runs the programs that the agent has requested. The last argument is one of the occasions that package hooks
// defines, such as "before". The service passes no flags, and appends ":" and the name of an agent other than the main
// one.
func runHooks(args []string) error {
	flags := flag.NewFlagSet(hooksCommand, flag.ContinueOnError)
	path := flags.String("config", "", "configuration file")
	outcomes := flags.String("outcomes", "", "directory for the outcomes")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if *path == "" {
		return runHooksUnit(flags.Arg(0))
	}
	conf, err := config.Load(*path)
	if err != nil {
		return err
	}
	return runPrograms(hookRunner(conf, conf.Paths.Runtime, *outcomes), flags.Arg(0))
}

// runHooksUnit runs as root in quorumd-hooks@.service. It reads no file that the agent can write.
func runHooksUnit(instance string) error {
	when, agent, named := strings.Cut(instance, ":")
	if !named {
		agent = mainAgent
	}
	conf, err := trustedConfig(rootfile.Root(), configs, agent)
	if err != nil {
		return fmt.Errorf("cannot run hooks: %w", err)
	}
	outcomes := outcomesOf(agent)
	if err := makeOutcomes(outcomes); err != nil {
		return fmt.Errorf("cannot report the state of the hooks: %w", err)
	}
	r := hookRunner(conf, outcomes, outcomes)
	r.Trust = func(program string) error { return trustedProgram(rootfile.Root(), program) }
	return runPrograms(r, when)
}

// trustedProgram returns an error unless only root can write the program and its directories. The path may be a
// symbolic link in a directory that only root can write.
func trustedProgram(files rootfile.Tree, path string) error {
	if err := files.Check(filepath.Dir(path)); err != nil {
		return err
	}
	program, err := filepath.EvalSymlinks(path)
	if err != nil {
		return err
	}
	return files.Check(program)
}

func hookRunner(conf config.Config, requests, outcomes string) hooks.Runner {
	return hooks.Runner{
		Dir: conf.Maintenance.Hooks, Requests: requests, Outcomes: outcomes, Host: conf.Host.Name,
		Timeout: conf.Maintenance.HookTimeout, Command: conf.Maintenance.CommandTimeout, Output: os.Stdout,
		Logger: slog.New(systemd.LogHandler(os.Stderr, slog.LevelInfo, journalcatalog.ID)),
	}
}

func runPrograms(r hooks.Runner, when string) error {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	return r.Run(ctx, when)
}
