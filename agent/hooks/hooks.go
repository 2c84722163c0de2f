// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

// Package hooks runs the operator's own programs. The programs in before.d run before the maintenance of this host and
// those in after.d after it, one after the other in the order of their names. A program in commands.d runs during the
// maintenance, on request. The programs in etcd.d start and stop an etcd that systemd does not manage.
//
// Two processes are involved, possibly as different users. The agent uses a Launcher, which records requests, launches
// the other process and checks its state. That process uses a Runner, which runs the programs. With systemd it is a
// unit of its own and runs as root; otherwise it is a child of the agent.
//
// It promises:
//   - Each run, identified by its ID, takes place at most once, even if it is started several times, and continues if
//     the agent restarts.
//   - The first failure ends the run: the remaining programs do not run. A program that exceeds its time limit is
//     killed with its children. A program that is not executable, or that users other than its owner may write, is a
//     failure.
//   - A command that has not started by its deadline never starts.
//   - No method of a Launcher waits for a program.
package hooks

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// The occasions on which programs run.
const (
	Before  = "before"  // an operation is about to take this host's etcd down
	After   = "after"   // etcd is back, and the operation is about to end
	Command = "command" // etcd is down, and the operation runs the requested program
	Etcd    = "etcd"    // the operator's own programs start or stop etcd
	// Defrag compacts the database while etcd is down. Package defrag runs it, not a program of the operator.
	Defrag = "defrag"
)

// Run is one requested run of hooks.
type Run struct {
	When    string        // one of the occasions above
	ID      string        // unique among all runs
	Program string        // for Command and Etcd: the name of the program
	Until   time.Duration // for Command, Etcd and Defrag: the deadline to start, since boot including time in suspend

	// The programs get these fields as QUORUMD_WORK, QUORUMD_REASON and QUORUMD_BY.
	Work, Reason, By string
}

// State is the state of a run.
type State string

// The states of a run.
const (
	None    State = "none"    // not started
	Running State = "running" // started; Hook is the current program
	Done    State = "done"    // all programs have succeeded, or there are none
	Failed  State = "failed"  // Hook is the program that failed, and Text the reason
)

// Result is the state of a run, with details.
type Result struct {
	State State
	Hook  string // file name of the current or failed program; empty if there is none
	Text  string
}

// list returns the paths of the programs to run, in order. For Command and Etcd, that is the named program. For Before
// and After, a missing directory counts as empty, and hidden files and leftovers of editors and package managers are
// skipped. A file that is not executable is not skipped, because a forgotten chmod would otherwise go unnoticed until
// the program is needed.
func list(dir, when, program string) ([]string, error) {
	if named, ok := namedDirs()[when]; ok {
		dir = filepath.Join(dir, named)
		if err := find(dir, program); err != nil {
			return nil, err
		}
		return []string{filepath.Join(dir, program)}, nil
	}
	entries, err := os.ReadDir(filepath.Join(dir, when+".d"))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("cannot look for hooks: %w; the directory must be readable by quorumd", err)
	}
	var paths []string
	for _, entry := range entries { // sorted by name
		if name := entry.Name(); !isLeftover(name) {
			paths = append(paths, filepath.Join(dir, when+".d", name))
		}
	}
	return paths, nil
}

// isLeftover reports whether a file is hidden, or was left behind by an editor or a package manager.
func isLeftover(name string) bool {
	if strings.HasPrefix(name, ".") || strings.HasSuffix(name, "~") {
		return true
	}
	return slices.ContainsFunc([]string{".dpkg-", ".rpmnew", ".rpmsave", ".rpmorig", ".ucf-"}, func(mark string) bool {
		return strings.Contains(name, mark)
	})
}
