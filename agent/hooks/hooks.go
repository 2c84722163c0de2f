// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

// Package hooks runs the operator's own programs before this host is taken down and after it is back: those in the
// directories before.d and after.d, one after the other in the order of their names; and, while it is down, the one of
// commands.d that was asked for by its name. Where etcd is run by others, those of etcd.d start and stop it.
//
// There are two sides, which may be two users. A Runner is the agent's side: it has somebody note what is to be run and
// start it, and looks how it goes. Main is the side that runs the programs: under systemd in a unit of its own, as
// root; otherwise in a child of the agent.
//
// It promises:
//   - What has one ID runs once, however often it is started, and goes on when the agent is restarted.
//   - The first program that fails, or takes longer than it may, ends the line: it is killed with all its children,
//     and the others do not run. So does one that cannot be run, and one that not only its owner may write.
//   - A command that has not begun by the time that it was given does not begin any more.
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
	Before  = "before"  // the host is taken down; it has its turn already
	After   = "after"   // it is back, before its turn ends
	Command = "command" // it is down: that one program runs for which it was taken down
	Etcd    = "etcd"    // etcd is to start or to stop, where the operator's own programs do that
)

// Run is one line of hooks that is wanted.
type Run struct {
	When    string        // Before, After, Command or Etcd
	ID      string        // differs from that of every other run: what was asked since when, for example
	Program string        // of Command and Etcd: the name of the program
	Until   time.Duration // of those: it begins by then or never, since boot, with the time asleep

	// What the programs are told, in QUORUMD_WORK, QUORUMD_REASON and QUORUMD_BY.
	Work, Reason, By string
}

// State says how far a run is.
type State string

// The states of a run.
const (
	None    State = "none"    // it has not begun
	Running State = "running" // it has, and Hook says with which program
	Done    State = "done"    // every program has succeeded, or there is none
	Failed  State = "failed"  // Hook is the program that did not, and Text says why
)

// Result is how a run goes.
type Result struct {
	State State
	Hook  string // file name; empty when no program is to blame
	Text  string
}

// list gives the paths of the programs to run, in order. A directory that is not there holds none. Hidden files and
// what editors and package managers leave behind are none; any other file must be a program, because one that was
// forgotten to be made executable would not be missed before the day it matters.
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
