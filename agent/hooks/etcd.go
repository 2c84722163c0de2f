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

// EtcdPrograms are the programs start and stop in etcd.d, for an etcd that systemd does not manage. The ID of a run
// consists of the program's name and the time, so that a restarted agent can find out which program ran last.
type EtcdPrograms struct{ Launcher *Launcher }

// Ready returns why the programs cannot run on this host, or nil.
func (p EtcdPrograms) Ready() error {
	return errors.Join(p.Launcher.find(Etcd, "start"), p.Launcher.find(Etcd, "stop"))
}

// Run starts the program with that name, "start" or "stop", and does not wait for it.
func (p EtcdPrograms) Run(ctx context.Context, word string) error {
	var now unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &now); err != nil {
		return fmt.Errorf("cannot read the clock: %w", err)
	}
	at := time.Duration(now.Nano())
	return p.Launcher.launch(ctx, Run{
		When: Etcd, ID: fmt.Sprintf("%s %d", word, at), Program: word, Until: at + BeginWithin,
		Work: word, Reason: word + " etcd", By: "quorumd",
	})
}

// EtcdRun is a run of one of the programs of etcd.d.
type EtcdRun struct {
	Word    string        // "start" or "stop"; empty if neither has run since the boot
	At      time.Duration // when the run was requested, since boot including time in suspend
	Running bool
	Failed  string // why the run failed; empty if it did not
}

// Last returns the last run since the boot, and its state.
func (p EtcdPrograms) Last() (EtcdRun, error) {
	var o outcome
	err := read(outcomePath(p.Launcher.outcomes, Etcd), &o)
	if errors.Is(err, fs.ErrNotExist) {
		return EtcdRun{}, nil
	}
	if err != nil {
		return EtcdRun{}, err
	}
	word, at, _ := strings.Cut(o.ID, " ")
	ns, err := strconv.ParseInt(at, 10, 64)
	if err != nil || ns < 0 || word != "start" && word != "stop" {
		return EtcdRun{}, fmt.Errorf("%.80q is not the ID of a run of etcd's programs", o.ID)
	}
	got, err := p.Launcher.outcomeOf(Run{When: Etcd, ID: o.ID})
	last := EtcdRun{Word: word, At: time.Duration(ns), Running: got.State == Running}
	if got.State == Failed {
		last.Failed = got.Text
	}
	return last, err
}
