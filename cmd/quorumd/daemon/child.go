// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package daemon

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/quorumd/quorumd/agent/config"
	"github.com/quorumd/quorumd/agent/datadir"
	"github.com/quorumd/quorumd/disk"
	"github.com/quorumd/quorumd/systemd/errand"
)

const (
	self         = "/proc/self/exe"
	probeCommand = "probe-disk"
	sendCommand  = "send-errand"  // stands in the place of a child that runs as etcd's user
	serveCommand = "serve-errand" // runs that child; quorumd-errand@.service starts it
	// errandConfigs is where the configurations lie for which errands are run: only root writes there.
	errandConfigs = "/etc/quorumd"
)

// children gives the command that starts a child, without the name of its hidden command: the
// agent's own program, or the way to it through the socket of the service that runs it as etcd's user.
func children(config, errands string) []string {
	if errands == "" {
		return []string{self}
	}
	return []string{self, sendCommand, errands, config}
}

// Child runs the children that touch the disk, and the operator's hooks. They are no commands for people. It tells whether
// args call for one, and gives its exit code.
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
	case datadir.MoveAsideCommand:
		err = datadir.MoveAsideMain(args[1:], os.Stdout)
	case sendCommand:
		code, err = sendErrand(args[1:])
	case hooksCommand:
		err = runHooks(args[1:])
	case serveCommand:
		err = errand.Serve([]string{self}, func(r errand.Request) error { return allowErrand(errandConfigs, r) })
	default:
		return 0, false
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1, true
	}
	return code, true
}

func sendErrand(args []string) (int, error) {
	if len(args) < 3 {
		return 0, errors.New("a socket, a configuration and a command are expected")
	}
	files := []*os.File{os.Stdin, os.Stdout, os.Stderr}
	if args[2] == probeCommand {
		files = append(files, os.NewFile(disk.PageFD, "page"))
	}
	return errand.Send(args[0], errand.Request{Config: args[1], Args: args[2:]}, files...)
}

// allowErrand keeps the agent, should it have been taken over, to the directories that root's
// configuration names.
func allowErrand(configs string, r errand.Request) error {
	if filepath.Dir(r.Config) != configs {
		return fmt.Errorf("the configuration %q does not lie in %s", r.Config, configs)
	}
	conf, err := config.Load(r.Config)
	if err != nil {
		return err
	}
	dirs := []string{conf.Etcd.DataDir, conf.Etcd.WALDir}
	switch {
	case len(r.Args) == 0:
		return errors.New("no command")
	case r.Args[0] == datadir.InspectCommand && slices.Equal(r.Args[1:], dirs),
		r.Args[0] == datadir.MoveAsideCommand && slices.Equal(r.Args[1:], dirs):
		return nil
	case r.Args[0] == probeCommand:
		dir, target, err := disk.ChildPlace(r.Args[1:])
		if err != nil {
			return err
		}
		if dir == conf.Disk.ProbeDir && target == probeTarget(conf) {
			return nil
		}
	}
	return fmt.Errorf("%q is not what %s names; restart quorumd if the file has changed", r.Args, r.Config)
}

// probeTarget is what the disk probe stands for: the directory of etcd's write-ahead log.
func probeTarget(c config.Config) string {
	if c.Etcd.WALDir != "" {
		return c.Etcd.WALDir
	}
	return c.Etcd.DataDir
}
