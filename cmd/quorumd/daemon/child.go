// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package daemon

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/quorumd/quorumd/agent/backup"
	"github.com/quorumd/quorumd/agent/config"
	"github.com/quorumd/quorumd/agent/datadir"
	"github.com/quorumd/quorumd/agent/defrag"
	"github.com/quorumd/quorumd/agent/execshim"
	"github.com/quorumd/quorumd/agent/externalcheck"
	"github.com/quorumd/quorumd/agent/peertls"
	"github.com/quorumd/quorumd/agent/recovery/rebuild"
	"github.com/quorumd/quorumd/disk"
	"github.com/quorumd/quorumd/health/kernellog"
	"github.com/quorumd/quorumd/health/smart"
	"github.com/quorumd/quorumd/systemd/rootfile"
	"github.com/quorumd/quorumd/systemd/roothelper"
	"github.com/quorumd/quorumd/systemd/runas"
)

const (
	self         = "/proc/self/exe"
	probeCommand = "probe-disk"
	sendCommand  = "runas"           // sends a command to the service that runs as etcd's user
	serveCommand = "serve-runas"     // runs a command as etcd's user; quorumd-runas@.service starts it
	smartCommand = "ask-drives"      // quorumd-smart.service starts it
	logCommand   = "read-kernel-log" // quorumd-kernel-log.service starts it
	// configs is the directory of the configurations that privileged services use. Only root may write to it.
	configs = "/etc/quorumd"
	// mainAgent is the name of the agent whose configuration is quorumd.yaml.
	mainAgent = "quorumd"
)

// children returns the beginning of a child's command line, up to the hidden subcommand: the agent's own program or, if
// runAs is the socket of the service that runs as etcd's user, the program that sends the command to that service.
func children(config, runAs string) []string {
	if runAs == "" {
		return []string{self}
	}
	return []string{self, sendCommand, runAs, agentOf(config)}
}

// agentOf returns the name of the agent whose configuration has the given path.
func agentOf(config string) string { return strings.TrimSuffix(filepath.Base(config), ".yaml") }

// configOf returns the path of an agent's configuration. It refuses a name that would lead out of the directory of
// configurations.
func configOf(dir, agent string) (string, error) {
	if err := roothelper.CheckAgent(agent); err != nil {
		return "", err
	}
	return filepath.Join(dir, agent+".yaml"), nil
}

// trustedConfig reads an agent's configuration. It refuses a file that any user other than root can write, including
// through the directories above it.
func trustedConfig(files rootfile.Tree, dir, agent string) (config.Config, error) {
	path, err := configOf(dir, agent)
	if err != nil {
		return config.Config{}, err
	}
	text, err := files.Read(path, config.MaxFileSize)
	if err != nil {
		return config.Config{}, fmt.Errorf("cannot trust the configuration: %w", err)
	}
	return config.Parse(path, text)
}

// Child runs the hidden subcommands, which are not for operators: children that access disks or run the operator's
// programs, and privileged services. It reports whether args name one, and returns its exit code.
func Child(args []string) (code int, is bool) {
	if len(args) == 0 {
		return 0, false
	}
	var err error
	switch args[0] {
	case probeCommand:
		return disk.ChildMain(args[1:], os.Stdin, os.Stderr), true
	case datadir.InspectCommand:
		err = datadir.InspectMain(args[1:], os.Stdout)
	case datadir.LogCommand:
		err = datadir.LogMain(args[1:], os.Stdout)
	case datadir.MoveAsideCommand:
		err = datadir.MoveAsideMain(args[1:], os.Stdout)
	case defrag.Command:
		err = defrag.Main(args[1:], os.Stdout)
	case peertls.Command:
		err = peertls.Main(args[1:], os.Stdin, os.Stdout)
	case rebuild.ReadCommand, rebuild.RebuildCommand, rebuild.SwapCommand:
		err = rebuild.Main(args, os.Stdout)
	case execshim.Command:
		err = execshim.Main(args[1:])
	case externalcheck.Command:
		err = externalcheck.Main(args[1:], "/")
	case sendCommand:
		code, err = sendRunAs(args[1:])
	case hooksCommand:
		err = runHooks(args[1:])
	case serveCommand:
		err = runas.Serve([]string{self}, func(r runas.Request) error {
			return allowRunAs(rootfile.Root(), configs, r)
		})
	case helperCommand:
		err = serveOrders()
	case guardCommand:
		code, err = guardStart(args[1:])
	case backup.Command:
		err = runBackup(args[1:], os.Stdout)
	case smartCommand:
		err = smart.Main(rootfile.Root(), os.Stderr)
	case logCommand:
		err = kernellog.Main(rootfile.Root(), os.Stderr)
	default:
		return 0, false
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1, true
	}
	return code, true
}

func sendRunAs(args []string) (int, error) {
	if len(args) < 3 {
		return 0, errors.New("a socket, an agent and a command are expected")
	}
	files := []*os.File{os.Stdin, os.Stdout, os.Stderr}
	if args[2] == probeCommand {
		files = append(files, os.NewFile(disk.PageFD, "page"))
	}
	return runas.Send(args[0], runas.Request{Agent: args[1], Args: args[2:]}, files...)
}

// allowRunAs returns an error unless an agent may run this command as etcd's user. A compromised agent reaches only the
// directories that root's configuration names, and may change etcd's data in them only if that configuration sets mode:
// manage.
func allowRunAs(files rootfile.Tree, configs string, r runas.Request) error {
	conf, err := trustedConfig(files, configs, r.Agent)
	if err != nil {
		return err
	}
	switch {
	case len(r.Args) == 0:
		return errors.New("no command")
	case readsOnly(conf, r.Args):
		return nil
	case changesData(conf, r.Args):
		if err := checkManages(conf, r.Agent); err != nil {
			return fmt.Errorf("cannot run %q: %w", r.Args[0], err)
		}
		return nil
	}
	return fmt.Errorf("the command %q does not match %s.yaml; restart quorumd if the file has changed", r.Args, r.Agent)
}

// readsOnly reports whether a command only reads the configured data directories, measures their disk, checks the files
// of the configured peer certificate, or uses that certificate to request /version.
func readsOnly(conf config.Config, args []string) bool {
	switch args[0] {
	case datadir.InspectCommand, datadir.LogCommand:
		return slices.Equal(args[1:], []string{conf.Etcd.DataDir, conf.Etcd.WALDir})
	case peertls.Command:
		return peertls.Allowed(args, conf)
	case rebuild.ReadCommand:
		return rebuild.Allowed(args, placeOf(conf), conf.Etcd.Binary)
	case probeCommand:
		dir, target, err := disk.ChildPlace(args[1:])
		return err == nil && dir == conf.Disk.ProbeDir && target == probeTarget(conf)
	}
	return false
}

// changesData reports whether a command moves aside, compacts or rebuilds data in the configured directories.
func changesData(conf config.Config, args []string) bool {
	if args[0] == defrag.Command {
		return defrag.Allowed(args, conf.Etcd.DataDir)
	}
	if args[0] == datadir.MoveAsideCommand {
		return slices.Equal(args[1:], []string{conf.Etcd.DataDir, conf.Etcd.WALDir})
	}
	return args[0] != rebuild.ReadCommand && rebuild.Allowed(args, placeOf(conf), conf.Etcd.Binary)
}

// probeTarget returns the directory whose disk the probe measures: the one of etcd's write-ahead log, or etcd's data
// directory if the log has no directory of its own.
func probeTarget(c config.Config) string {
	if c.Etcd.WALDir != "" {
		return c.Etcd.WALDir
	}
	return c.Etcd.DataDir
}
