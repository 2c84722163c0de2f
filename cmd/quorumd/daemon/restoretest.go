// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package daemon

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"

	"github.com/quorumd/quorumd/agent/backup"
	"github.com/quorumd/quorumd/agent/backup/restoretest"
	"github.com/quorumd/quorumd/agent/config"
	"github.com/quorumd/quorumd/agent/policy"
)

// spoolOf is the directory for snapshots that are being processed on this host.
func spoolOf(conf config.Config) string { return filepath.Join(conf.Paths.State, "snapshots") }

// spoolReader returns a function that reads the state of that directory for restore tests.
func spoolReader(conf config.Config) func() (policy.Spool, error) {
	return func() (policy.Spool, error) {
		space, err := backup.SpaceOf(conf.Paths.State)
		if err != nil {
			return policy.Spool{}, err
		}
		return policy.Spool{Known: true, Free: uint64(max(0, space.Free)), Shared: sharesDisk(conf)}, nil
	}
}

// sharesDisk reports whether a restore test writes to a file system of etcd's data or log. Unknown counts as shared.
func sharesDisk(conf config.Config) bool {
	own, ok := deviceOf(conf.Paths.State)
	for _, dir := range []string{conf.Etcd.DataDir, conf.Etcd.WALDir} {
		if dir == "" {
			continue
		}
		if of, known := deviceOf(dir); !ok || !known || of == own {
			return true
		}
	}
	return false
}

// deviceOf returns the device of the file system on which a directory is, or will be once it is made.
func deviceOf(dir string) (device uint64, ok bool) {
	var s unix.Stat_t
	err := unix.Stat(dir, &s)
	for errors.Is(err, unix.ENOENT) && dir != filepath.Dir(dir) {
		dir = filepath.Dir(dir)
		err = unix.Stat(dir, &s)
	}
	return s.Dev, err == nil
}

// slowsEtcd reports whether a restore test writes to the disk of a running member, so that backup.rate limits it.
func slowsEtcd(conf config.Config) bool {
	_, err := os.Lstat(filepath.Join(conf.Etcd.DataDir, "member"))
	return !errors.Is(err, os.ErrNotExist) && sharesDisk(conf)
}

// testRestore runs a restore test of the named snapshot, or of the newest, and records the result in the store.
func (j job) testRestore(ctx context.Context, name string) (backup.Outcome, error) {
	m, err := j.manifest(ctx, name)
	if err != nil {
		return backup.Outcome{}, err
	}
	served, err := restoretest.Run(ctx, j.store, m, j.conf.Etcd.Binary, j.options)
	if err != nil {
		return unproven(err)
	}
	if err := backup.MarkRestored(ctx, j.store, m); err != nil {
		return backup.Outcome{}, err
	}
	now := &j.options.Now
	proven := j.evidence.Seen(backup.Snapshot{Manifest: m, VerifiedAt: now, RestoreTestedAt: now})
	return backup.Outcome{Snapshots: []backup.Snapshot{proven}, Served: served}, nil
}

// unproven separates what keeps this host from testing anything from what is wrong with a snapshot.
func unproven(err error) (backup.Outcome, error) {
	if errors.Is(err, backup.ErrNoIdentity) || errors.Is(err, restoretest.ErrKilled) ||
		errors.Is(err, restoretest.ErrNoMemory) {
		return backup.Outcome{Unprovable: err.Error()}, nil
	}
	return backup.Outcome{}, err
}

// sweepRestoreTest removes what a restore test has left that was killed with this host's agent.
func sweepRestoreTest(conf config.Config, log *slog.Logger) {
	if err := restoretest.Sweep(spoolOf(conf)); err != nil {
		log.Warn("cannot remove the remains of a restore test", "error", err, "remedy",
			"rm -r "+filepath.Join(spoolOf(conf), "restoreTest"))
	}
}

const (
	tidyEvery = 100 * time.Millisecond
	// tidyFor is how long the etcd of a killed restore test may take to end.
	tidyFor = 10 * time.Second
)

// tidyRestoreTest removes what a restore test has left that has just ended. Its etcd may end a moment later than its
// child.
func tidyRestoreTest(conf config.Config, log *slog.Logger) {
	limit := time.NewTimer(tidyFor)
	defer limit.Stop()
	tick := time.NewTicker(tidyEvery)
	defer tick.Stop()
	for {
		sweepRestoreTest(conf, log)
		if _, err := os.Lstat(filepath.Join(spoolOf(conf), "restoreTest")); err != nil {
			return
		}
		select {
		case <-tick.C:
		case <-limit.C:
			return // the next restore test removes it
		}
	}
}
