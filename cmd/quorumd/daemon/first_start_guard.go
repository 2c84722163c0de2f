// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package daemon

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/quorumd/quorumd/agent/config"
	"github.com/quorumd/quorumd/agent/fileaccess"
	"github.com/quorumd/quorumd/agent/policy"
	"github.com/quorumd/quorumd/systemd"
	"github.com/quorumd/quorumd/systemd/rootfile"
)

const (
	// guardCommand is the hidden subcommand that the drop-in of etcd's unit runs before each start of etcd.
	guardCommand = "guard-etcd"
	// exitHeld is the only exit status of guardCommand that prevents the start of etcd. It differs from the exit
	// statuses of a crash, a wrong command line, timeout(1), and a shell that does not find the program.
	exitHeld     = 75
	guardTimeout = 5 * time.Second
	maxAgents    = 64 // maximum number of configurations to read
)

// startGuard prevents the start of etcd's unit on a new host until the agent has made its first decision. At the first
// boot of a new host, systemd starts etcd as well as quorumd, and etcd without an environment creates a cluster of one
// member on localhost.
//
// It runs as root in ExecCondition= of the unit and needs no running agent. A file written at installation would be
// state: an upgrade, removal or rollback could leave it behind on a host with data. Instead, the guard looks at the
// disk at every start. Condition…= lines are not enough, because they cannot determine which directory etcd uses. The
// guard reads only root's files, opens no file in etcd's directory, and allows the start whenever a fact is unknown.
type startGuard struct {
	files   rootfile.Tree
	configs string // the directory of the configurations
	getenv  func(string) string
	units   unitReader
	out     io.Writer
}

// unitReader queries systemd about units.
type unitReader interface {
	Command(ctx context.Context, unit string) ([]string, error)
	Starts(ctx context.Context, unit string) (bool, error)
	Mounted(ctx context.Context, path string) (bool, error)
}

func guardStart(args []string) (int, error) {
	if len(args) != 1 {
		return 0, errors.New("usage: guard-etcd UNIT")
	}
	ctx, cancel := context.WithTimeout(context.Background(), guardTimeout)
	defer cancel()
	g := startGuard{rootfile.Root(), configs, os.Getenv, systemd.Units{}, os.Stderr}
	if g.blocks(ctx, args[0]) {
		return exitHeld, nil
	}
	return 0, nil
}

// blocks reports whether the unit must not start, and prints why.
func (g startGuard) blocks(ctx context.Context, unit string) bool {
	files, err := filepath.Glob(filepath.Join(g.configs, "*.yaml"))
	if err != nil || len(files) > maxAgents {
		return false
	}
	for _, file := range files {
		agent := agentOf(file)
		conf, err := trustedConfig(g.files, g.configs, agent)
		if err != nil {
			fmt.Fprintf(g.out, "quorumd: the start guard of %s ignores %s: %v\n", unit, file, err)
			continue
		}
		if g.facts(ctx, conf, agent, unit).StartGuarded() {
			fmt.Fprintf(g.out, "quorumd: %s does not start yet: %s has not decided about this host yet, and %s "+
				"contains no member → quorumctl status; to run etcd without quorumd: systemctl disable --now %s\n",
				unit, fileaccess.AgentUnit(agent), conf.Etcd.DataDir, fileaccess.AgentUnit(agent))
			return true
		}
	}
	return false
}

// facts collects the facts for the policy's decision. It begins with the cheapest and stops when one already allows the
// start, as on every host with data.
func (g startGuard) facts(ctx context.Context, conf config.Config, agent, unit string) (f policy.FirstStart) {
	e := conf.Etcd
	f.Manages = e.Unit == unit && e.Runner == config.RunnerSystemd && conf.Mode == config.ModeManage
	if !f.Manages {
		return f
	}
	info, err := os.Lstat(e.EnvironmentFile)
	f.Decided = err == nil && info.Size() > 0 || err != nil && !errors.Is(err, fs.ErrNotExist)
	if f.Decided {
		return f
	}
	own, err := g.unitsDir(ctx, unit, e.Binary)
	f.NoMember = err == nil && g.noMember(ctx, e.DataDir) && g.noMember(ctx, own)
	if !f.NoMember {
		return f
	}
	f.AgentStarts, err = g.units.Starts(ctx, fileaccess.AgentUnit(agent))
	f.AgentStarts = f.AgentStarts && err == nil
	return f
}

// noMember reports whether a directory certainly contains no member. It returns false if the path cannot be resolved or
// its file system is not mounted.
func (g startGuard) noMember(ctx context.Context, dir string) bool {
	if _, err := os.Lstat(filepath.Join(dir, "member")); !errors.Is(err, fs.ErrNotExist) {
		return false
	}
	real, err := resolved(dir)
	if err != nil {
		return false
	}
	for _, path := range []string{dir, real} {
		if mounted, err := g.units.Mounted(ctx, path); err != nil || !mounted {
			return false
		}
	}
	return true
}

// resolved returns the path of a directory with all symbolic links followed, even if it does not exist yet. A dangling
// link is an error, because its target may be on a file system that is not mounted.
func resolved(dir string) (string, error) {
	real, err := filepath.EvalSymlinks(dir)
	if !errors.Is(err, fs.ErrNotExist) || dir == filepath.Dir(dir) {
		return real, err
	}
	if _, err := os.Lstat(dir); err == nil {
		return "", fmt.Errorf("%s is a dangling symbolic link", dir)
	}
	above, err := resolved(filepath.Dir(dir))
	return filepath.Join(above, filepath.Base(dir)), err
}

// unitsDir returns the data directory that etcd would use if its unit started now. Flags on the command line override
// the unit's environment, which this process shares. unitsDir returns an error if another program, such as
// a shell, starts etcd, or if etcd reads a configuration file.
func (g startGuard) unitsDir(ctx context.Context, unit, binary string) (string, error) {
	args, err := g.units.Command(ctx, unit)
	if err != nil {
		return "", err
	}
	if len(args) == 0 || args[0] != binary && filepath.Base(args[0]) != "etcd" {
		return "", errors.New("the unit starts etcd through another program")
	}
	var words []string
	for _, arg := range args {
		if expanded := os.Expand(arg, g.getenv); expanded != arg { // systemd expands $NAME into words
			words = append(words, strings.Fields(expanded)...)
		} else {
			words = append(words, arg)
		}
	}
	if cmp.Or(flagOf(words, "config-file"), g.getenv("ETCD_CONFIG_FILE")) != "" {
		return "", errors.New("etcd reads its own configuration file")
	}
	name := cmp.Or(flagOf(words, "name"), g.getenv("ETCD_NAME"), "default")
	return filepath.Abs(cmp.Or(flagOf(words, "data-dir"), g.getenv("ETCD_DATA_DIR"), name+".etcd"))
}

// flagOf returns the value of the last flag with this name.
func flagOf(words []string, name string) (value string) {
	for i, word := range words {
		word, dashed := strings.CutPrefix(word, "-")
		got, given, has := strings.Cut(strings.TrimPrefix(word, "-"), "=")
		switch {
		case !dashed || got != name:
		case has:
			value = given
		case i+1 < len(words):
			value = words[i+1]
		}
	}
	return value
}
