// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package setup

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"github.com/quorumd/quorumd/agent/config"
	"github.com/quorumd/quorumd/agent/policy"
)

// NoRestoreTest returns a text if the restore test that backup.restoreTest schedules will never run on this host, or
// only on a host without a member. Otherwise it returns "".
func NoRestoreTest(c config.Config) string {
	if c.Backup.RestoreTest == 0 {
		return ""
	}
	const never = "backup.restoreTest: this host will never run the scheduled restore test"
	switch {
	case c.Mode != config.ModeManage:
		return never + " in mode: observe; set mode: manage"
	case len(c.Backup.EncryptTo) > 0 && c.Backup.IdentityFile == "":
		return never + ": it cannot decrypt snapshots; set backup.identityFile"
	case c.Cluster.Voters == 1 && c.Cluster.Standbys == 0:
		return "backup.restoreTest: the only voter leads, so only a host without a member runs the scheduled restore " +
			"test; if there is none, run quorumctl snapshot test-restore"
	}
	return noRestoreTestRoom(c, never)
}

// noRestoreTestRoom returns a text if paths.state has too little free space for a restore test. If the size of the
// database cannot be read, it counts as 0, so that the text reports the minimum.
func noRestoreTestRoom(c config.Config, never string) string {
	var space unix.Statfs_t
	if unix.Statfs(c.Paths.State, &space) != nil {
		return "" // a missing directory is reported elsewhere
	}
	free := space.Bavail * uint64(space.Bsize) //nolint:gosec // block sizes are positive
	var size uint64
	info, err := os.Stat(filepath.Join(c.Etcd.DataDir, "member", "snap", "db"))
	if err == nil {
		size = uint64(max(0, info.Size()))
	}
	var state, data unix.Stat_t
	err = errors.Join(unix.Stat(c.Paths.State, &state), unix.Stat(c.Etcd.DataDir, &data))
	shared := err == nil && state.Dev == data.Dev
	if begin, _ := policy.RestoreTestRoom(size, shared); free < begin {
		return fmt.Sprintf("%s: %d MiB are free in %s, but %d MiB are needed; free some space, or set paths.state to "+
			"a directory on a different file system from etcd's", never, free>>20, c.Paths.State, begin>>20)
	}
	return ""
}
