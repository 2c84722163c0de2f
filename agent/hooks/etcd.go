// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package hooks

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// EtcdPrograms are the programs start and stop of etcd.d, for an etcd that is run by others. A run's ID has its word
// and time, so that a restarted agent knows which one ran last.
type EtcdPrograms struct{ Runner *Runner }

// Ready returns why they cannot run here, or nil.
func (p EtcdPrograms) Ready() error {
	return errors.Join(p.Runner.find(Etcd, "start"), p.Runner.find(Etcd, "stop"))
}

// Run starts the program of that name, and does not wait for it.
func (p EtcdPrograms) Run(ctx context.Context, word string) error {
	var now unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &now); err != nil {
		return fmt.Errorf("cannot read the clock: %w", err)
	}
	at := time.Duration(now.Nano())
	return p.Runner.launch(ctx, Run{
		When: Etcd, ID: fmt.Sprintf("%s %d", word, at), Program: word, Until: at + BeginWithin,
		Work: word, Reason: "etcd is to " + word, By: "quorumd",
	})
}

// EtcdRun is a run of one of them.
type EtcdRun struct {
	Word    string        // "start", "stop", or empty if none was run since the boot
	At      time.Duration // since boot, including time in suspend
	Running bool
	Failed  string // why it failed; empty if it did not
}

// Last returns the last run since the boot, and its state.
func (p EtcdPrograms) Last() (EtcdRun, error) {
	var o outcome
	err := read(outcomePath(p.Runner.outcomes, Etcd), &o)
	if errors.Is(err, fs.ErrNotExist) {
		return EtcdRun{}, nil
	}
	if err != nil {
		return EtcdRun{}, err
	}
	word, at, _ := strings.Cut(o.ID, " ")
	ns, err := strconv.ParseInt(at, 10, 64)
	if err != nil || ns < 0 || word != "start" && word != "stop" {
		return EtcdRun{}, fmt.Errorf("%.80q is no run of etcd's programs", o.ID)
	}
	got, err := p.Runner.outcomeOf(Run{When: Etcd, ID: o.ID})
	last := EtcdRun{Word: word, At: time.Duration(ns), Running: got.State == Running}
	if got.State == Failed {
		last.Failed = got.Text
	}
	return last, err
}
