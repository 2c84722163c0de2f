// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

// Package hooks runs the operator's own programs before this host is taken down and after it is back: those in the
// directories before.d and after.d, one after the other in the order of their names. While the host is down, it runs
// the requested program of commands.d. The programs of etcd.d start and stop an etcd that is run by others.
//
// There are two sides, which may be two users. A Runner is the agent's side: it records what to run, has it started,
// and checks its state. Main is the side that runs the programs: under systemd in a unit of its own, as root; otherwise
// in a child of the agent.
//
// It promises:
//   - A run with one ID runs once, however often it is started, and continues if the agent is restarted.
//   - The first program that fails or exceeds its time ends the run: it is killed with all its children, and the others
//     do not run. The same is true of a program that is not executable or that users other than its owner may write.
//   - A command that has not started by its deadline never starts.
//   - No call of a Runner waits for a program.
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

// When hooks run.
const (
	Before  = "before"  // the host is about to be taken down, in its operation
	After   = "after"   // it is back, before its operation ends
	Command = "command" // it is down: the requested program runs
	Etcd    = "etcd"    // etcd is started or stopped by the operator's own programs
)

// Run is one requested run of hooks.
type Run struct {
	When    string        // Before, After, Command or Etcd
	ID      string        // unique among all runs: for example, the request and its time
	Program string        // of Command and Etcd: the name of the program
	Until   time.Duration // for the same: the deadline to start, since boot including time in suspend

	// Passed to the programs in QUORUMD_WORK, QUORUMD_REASON and QUORUMD_BY.
	Work, Reason, By string
}

// State is the state of a run.
type State string

// The states of a run.
const (
	None    State = "none"    // not started
	Running State = "running" // started; Hook is the current program
	Done    State = "done"    // every program has succeeded, or there is none
	Failed  State = "failed"  // Hook is the program that failed, and Text the reason
)

// Result is the state of a run.
type Result struct {
	State State
	Hook  string // file name; empty if no program is to blame
	Text  string
}

// list returns the paths of the programs to run, in order. A missing directory has none. Hidden files and leftovers of
// editors and package managers are skipped. Any other file must be executable: a forgotten chmod would otherwise not be
// noticed until the program is needed.
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
		return nil, fmt.Errorf("cannot look for hooks: %w; make the directory readable for quorumd", err)
	}
	var paths []string
	for _, entry := range entries { // sorted by name
		if name := entry.Name(); !leftover(name) {
			paths = append(paths, filepath.Join(dir, when+".d", name))
		}
	}
	return paths, nil
}

func leftover(name string) bool {
	if strings.HasPrefix(name, ".") || strings.HasSuffix(name, "~") {
		return true
	}
	return slices.ContainsFunc([]string{".dpkg-", ".rpmnew", ".rpmsave", ".rpmorig", ".ucf-"}, func(mark string) bool {
		return strings.Contains(name, mark)
	})
}
