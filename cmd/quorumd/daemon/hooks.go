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
	"github.com/quorumd/quorumd/agent/hooks"
	"github.com/quorumd/quorumd/agent/journalcatalog"
	"github.com/quorumd/quorumd/systemd"
	"github.com/quorumd/quorumd/systemd/rootfile"
	"github.com/quorumd/quorumd/systemd/roothelper"
)

const (
	hooksCommand = "hooks" // runs the operator's programs; quorumd-hooks@.service starts it
	// unitOutcomes is the directory of that service's requests and outcomes. Only root writes there.
	unitOutcomes = "/run/quorumd-hooks"
)

// openHooks returns the agent's side of the hooks. With orders, a service of its own runs them, as root; otherwise a
// child of the agent does.
func openHooks(conf config.Config, path string, orders *roothelper.Client) (*hooks.Runner, error) {
	if orders != nil {
		launch := func(ctx context.Context, run hooks.Run) error {
			return orders.RunHooks(ctx, roothelper.Hooks{
				When: run.When, ID: run.ID, Program: run.Program, Until: run.Until, Work: run.Work, Reason: run.Reason,
				By: run.By,
			})
		}
		return hooks.NewRunner(conf.Maintenance.Hooks, outcomesOf(agentOf(path)), launch), nil
	}
	outcomes := filepath.Join(conf.Paths.Runtime, "hooks")
	if err := os.MkdirAll(outcomes, 0o755); err != nil {
		return nil, fmt.Errorf("cannot keep the outcome of hooks: %w; correct paths.runtime", err)
	}
	child := hooks.AsChild(conf.Paths.Runtime, func(when string) []string {
		return []string{self, hooksCommand, "--config", path, "--outcomes", outcomes, when}
	})
	return hooks.NewRunner(conf.Maintenance.Hooks, outcomes, child), nil
}

// hooksUnit names the unit that runs the hooks of an agent.
func hooksUnit(agent, when string) string {
	if agent == mainAgent {
		return "quorumd-hooks@" + when + ".service"
	}
	return "quorumd-hooks@" + when + ":" + agent + ".service"
}

// outcomesOf returns the directory of the service's requests and outcomes for an agent.
func outcomesOf(agent string) string { return filepath.Join(unitOutcomes, agent) }

// makeOutcomes makes the directory of the outcomes and the one above it, readable for the agent whatever the umask is.
func makeOutcomes(dir string) error {
	return errors.Join(os.MkdirAll(dir, 0o755), os.Chmod(filepath.Dir(dir), 0o755), os.Chmod(dir, 0o755))
}

// runHooks is the side that runs the programs. The last argument is before, after or command. In the service, which has
// no flags, the name of an agent other than the main one may follow after a colon.
func runHooks(args []string) error {
	flags := flag.NewFlagSet(hooksCommand, flag.ContinueOnError)
	path := flags.String("config", "", "configuration file")
	outcomes := flags.String("outcomes", "", "directory in which to tell how it goes")
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
	return runLine(line(conf, conf.Paths.Runtime, *outcomes), flags.Arg(0))
}

// runHooksUnit is what quorumd-hooks@.service runs, as root: it reads nothing that the agent can write.
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
		return fmt.Errorf("cannot tell how the hooks go: %w", err)
	}
	l := line(conf, outcomes, outcomes)
	l.Trust = func(program string) error { return trustedProgram(rootfile.Root(), program) }
	return runLine(l, when)
}

// trustedProgram returns an error if others than root could have put a program there, or have changed it. It may be a
// link from a directory of root's.
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

func line(conf config.Config, wanted, outcomes string) hooks.Executor {
	return hooks.Executor{
		Dir: conf.Maintenance.Hooks, Requests: wanted, Outcomes: outcomes, Host: conf.Host.Name,
		Timeout: conf.Maintenance.HookTimeout, Command: conf.Maintenance.CommandTimeout, Output: os.Stdout,
		Logger: slog.New(systemd.LogHandler(os.Stderr, slog.LevelInfo, journalcatalog.ID)),
	}
}

func runLine(l hooks.Executor, when string) error {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	return l.Run(ctx, when)
}
