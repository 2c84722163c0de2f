// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package sensors

import (
	"errors"
	"math"
	"path/filepath"

	"golang.org/x/sys/unix"

	"github.com/quorumd/quorumd/health"
)

// Database reads the file system of etcd's data directory. It returns the zero value if etcd's WAL, whose device number
// is log, is on the same file system. If the directory is missing, its nearest existing ancestor counts. Database calls
// stat and statfs, so it may hang.
func (r *Reader) Database(dir string, log uint64) health.DatabaseReading {
	var stat unix.Stat_t
	at := dir
	err := unix.Stat(at, &stat)
	for errors.Is(err, unix.ENOENT) && at != filepath.Dir(at) {
		at = filepath.Dir(at)
		err = unix.Stat(at, &stat)
	}
	device := uint64(stat.Dev) //nolint:unconvert // it is 32 bits wide on some architectures
	switch {
	case err != nil:
		return health.NotAvailable[health.DatabaseReading](
			"cannot inspect the file system of " + dir + ": " + err.Error(),
		)
	case device == log:
		return health.DatabaseReading{}
	}
	out := health.DatabaseReading{Apart: true, Devices: r.Devices(device)}
	var room unix.Statfs_t
	if err := unix.Statfs(at, &room); err != nil {
		out.Absent = "cannot read the free space of the file system of " + dir + ": " + err.Error()
		return out
	}
	measured(room, &out)
	return out
}

// measured copies the sizes of a file system if they are plausible.
func measured(s unix.Statfs_t, out *health.DatabaseReading) {
	block := uint64(max(s.Bsize, 0)) //nolint:gosec // it is not negative
	if block == 0 || s.Blocks == 0 || s.Blocks > math.MaxUint64/block || s.Bavail > s.Blocks {
		out.Absent = "the file system of etcd's database reports an impossible size"
		return
	}
	out.Free, out.Total = s.Bavail*block, s.Blocks*block
	if s.Ffree <= s.Files {
		out.Inodes, out.InodesFree = s.Files, s.Ffree
	}
}
