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
	"regexp"
	"strings"
	"syscall"

	"github.com/quorumd/quorumd/agent/catalog"
	"github.com/quorumd/quorumd/agent/config"
	"github.com/quorumd/quorumd/agent/hooks"
	"github.com/quorumd/quorumd/systemd"
)

const (
	hooksCommand = "hooks" // runs the operator's programs; quorumd-hooks@.service starts it
	// unitOutcomes is where that service tells how it goes, and mainConfig what it is told by an instance without a name.
	unitOutcomes = "/run/quorumd-hooks"
	mainConfig   = "quorumd"
)

// agentName is what an agent beside the main one may be called, as in quorumd@NAME.service.
var agentName = regexp.MustCompile(`^[A-Za-z0-9_.][A-Za-z0-9_.-]*$`)

// hookUnits are the units that run hooks; none where the agent's own child does.
type hookUnits map[string]*systemd.Service

func (u hookUnits) close() {
	for _, unit := range u {
		_ = unit.Close()
	}
}

// openHooks gives the agent's side of the hooks. With errands, a service of its own runs them, as root; otherwise
// a child of the agent does.
func openHooks(conf config.Config, path, errands string, log *slog.Logger) (*hooks.Runner, hookUnits, error) {
	if errands == "" {
		outcomes := filepath.Join(conf.Paths.Runtime, "hooks")
		if err := os.MkdirAll(outcomes, 0o755); err != nil {
			return nil, nil, fmt.Errorf("cannot keep the outcome of hooks: %w; correct paths.runtime", err)
		}
		child := hooks.Child(func(when string) []string {
			return []string{self, hooksCommand, "--config", path, "--outcomes", outcomes, when}
		})
		return hooks.NewRunner(conf.Maintenance.Hooks, conf.Paths.Runtime, outcomes, child), nil, nil
	}
	units := hookUnits{}
	for _, when := range []string{hooks.Before, hooks.After, hooks.Command} {
		unit, err := systemd.NewService(systemd.Options{Unit: hooksUnit(path, when), Logger: log})
		if err != nil {
			return nil, nil, err
		}
		units[when] = unit
	}
	launch := func(ctx context.Context, when string) error { return units[when].Start(ctx) }
	return hooks.NewRunner(conf.Maintenance.Hooks, conf.Paths.Runtime, outcomesOf(path), launch), units, nil
}

// hooksUnit names the unit that runs the hooks of the agent with that configuration.
func hooksUnit(path, when string) string {
	name := strings.TrimSuffix(filepath.Base(path), ".yaml")
	if name == mainConfig {
		return "quorumd-hooks@" + when + ".service"
	}
	return "quorumd-hooks@" + when + ":" + name + ".service"
}

// outcomesOf gives the directory in which the service tells how the hooks of the agent with that configuration go.
func outcomesOf(path string) string {
	return filepath.Join(unitOutcomes, strings.TrimSuffix(filepath.Base(path), ".yaml"))
}

// makeOutcomes makes the directory in which the service tells how it goes, and the one above it, readable for the agent whatever
// the umask is.
func makeOutcomes(dir string) error {
	return errors.Join(os.MkdirAll(dir, 0o755), os.Chmod(filepath.Dir(dir), 0o755), os.Chmod(dir, 0o755))
}

// runHooks is the side that runs the programs. The last argument is before, after or command; in the service, which gives no
// flags, the name of an agent other than the main one may follow after a colon.
func runHooks(args []string) error {
	flags := flag.NewFlagSet(hooksCommand, flag.ContinueOnError)
	path := flags.String("config", "", "configuration file")
	outcomes := flags.String("outcomes", "", "directory in which to tell how it goes")
	if err := flags.Parse(args); err != nil {
		return err
	}
	when, name, named := strings.Cut(flags.Arg(0), ":")
	if *path == "" {
		if !named {
			name = mainConfig
		}
		if !agentName.MatchString(name) {
			return fmt.Errorf("cannot run hooks: %q is no name of a configuration", name)
		}
		*path = filepath.Join(errandConfigs, name+".yaml")
		*outcomes = outcomesOf(*path)
		if err := makeOutcomes(*outcomes); err != nil {
			return fmt.Errorf("cannot tell how the hooks go: %w", err)
		}
	}
	conf, err := config.Load(*path)
	if err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	return hooks.Line{
		Dir: conf.Maintenance.Hooks, Wanted: conf.Paths.Runtime, Outcomes: *outcomes, Host: conf.Host.Name,
		Timeout: conf.Maintenance.HookTimeout, Command: conf.Maintenance.CommandTimeout, Output: os.Stdout,
		Logger: slog.New(systemd.LogHandler(os.Stderr, slog.LevelInfo, catalog.ID)),
	}.Run(ctx, when)
}
