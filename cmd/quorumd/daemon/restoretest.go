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
	"github.com/quorumd/quorumd/agent/record"
)

// spoolOf returns the directory for snapshots that this host processes.
func spoolOf(conf config.Config) string { return filepath.Join(conf.Paths.State, "snapshots") }

// spoolReader returns a function that reads the state of the spool for restore tests.
func spoolReader(conf config.Config) func() (policy.Spool, error) {
	return func() (policy.Spool, error) {
		space, err := backup.SpaceOf(conf.Paths.State)
		if err != nil {
			return policy.Spool{}, err
		}
		return policy.Spool{Known: true, Free: uint64(max(0, space.Free)), Shared: sharesDisk(conf)}, nil
	}
}

// sharesDisk reports whether the spool may be on the file system of etcd's data or of its write-ahead log.
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

// deviceOf returns the device of a directory's file system. For a missing directory, it uses the nearest existing
// parent.
func deviceOf(dir string) (device uint64, ok bool) {
	var s unix.Stat_t
	err := unix.Stat(dir, &s)
	for errors.Is(err, unix.ENOENT) && dir != filepath.Dir(dir) {
		dir = filepath.Dir(dir)
		err = unix.Stat(dir, &s)
	}
	return s.Dev, err == nil
}

// slowsEtcd reports whether a restore test may write to the file system of a member, so that backup.rate must limit it.
func slowsEtcd(conf config.Config) bool {
	_, err := os.Lstat(filepath.Join(conf.Etcd.DataDir, "member"))
	return !errors.Is(err, os.ErrNotExist) && sharesDisk(conf)
}

// testRestore tests the restore of the named snapshot, or of the newest one, and records a success in the store.
func (j job) testRestore(ctx context.Context, name string) (backup.Outcome, error) {
	m, err := j.manifest(ctx, name)
	if err != nil {
		return backup.Outcome{}, err
	}
	served, err := restoretest.Run(ctx, j.store, m, j.conf.Etcd.Binary, j.options)
	if err != nil {
		return untestable(err)
	}
	if err := backup.MarkRestored(ctx, j.store, m); err != nil {
		return backup.Outcome{}, err
	}
	now := &j.options.Now
	tested := j.evidence.Seen(backup.Snapshot{
		Manifest: m, SnapshotEvidence: record.SnapshotEvidence{VerifiedAt: now, RestoreTestedAt: now},
	})
	return backup.Outcome{Snapshots: []backup.Snapshot{tested}, Served: served}, nil
}

// untestable stores an error that is caused by this host, not by the snapshot, in the outcome's Unprovable. It returns
// any other error: a failure of the test.
func untestable(err error) (backup.Outcome, error) {
	if errors.Is(err, backup.ErrNoIdentity) || errors.Is(err, restoretest.ErrKilled) ||
		errors.Is(err, restoretest.ErrNoMemory) {
		return backup.Outcome{Unprovable: err.Error()}, nil
	}
	return backup.Outcome{}, err
}

// sweepRestoreTest removes the files that a killed restore test has left behind.
func sweepRestoreTest(conf config.Config, log *slog.Logger) {
	if err := restoretest.Sweep(spoolOf(conf)); err != nil {
		log.Warn("cannot remove the files of a killed restore test", "error", err, "remedy",
			"rm -r "+filepath.Join(spoolOf(conf), "restoreTest"))
	}
}

const (
	tidyEvery = 100 * time.Millisecond
	// tidyFor is how long to wait for the etcd of a killed restore test to end.
	tidyFor = 10 * time.Second
)

// tidyRestoreTest removes the files of a restore test that has just ended. It retries because the test's etcd may end
// later than the child.
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
			return // the next restore test removes the files
		}
	}
}
