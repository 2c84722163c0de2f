// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package sensors

import (
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/quorumd/quorumd/health"
)

func TestReadsTheDatabasesFileSystemUnlessItIsTheWALs(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	var stat unix.Stat_t
	if err := unix.Stat(dir, &stat); err != nil {
		t.Fatal(err)
	}
	device := uint64(stat.Dev) //nolint:unconvert // it is 32 bits wide on some architectures
	r := New()
	for _, at := range []string{dir, filepath.Join(dir, "not", "made", "yet")} {
		if got := r.Database(at, device); got.Apart {
			t.Errorf("%s is on the WAL's file system: %+v", at, got)
		}
		got := r.Database(at, device+1)
		if !got.Apart || got.Total == 0 || got.Free > got.Total || got.Absent != "" {
			t.Errorf("%s is on another file system: %+v", at, got)
		}
		if len(got.Devices.Chain) == 0 && got.Devices.Absent == "" {
			t.Errorf("neither devices nor a reason: %+v", got.Devices)
		}
	}
	loop := filepath.Join(dir, "loop")
	if err := os.Symlink(loop, loop); err != nil {
		t.Fatal(err)
	}
	got := r.Database(loop, device)
	if got.Total > 0 || !strings.Contains(got.Absent, loop) || got.Devices.FileSystem.ReadOnly.Known {
		t.Errorf("without access: %+v", got)
	}
}

func TestAnImpossibleSizeIsUnknown(t *testing.T) {
	t.Parallel()
	for what, s := range map[string]unix.Statfs_t{
		"no blocks":                {Bsize: 4096},
		"blocks of no size":        {Blocks: 10, Bavail: 5},
		"blocks of less than that": {Bsize: -4096, Blocks: 10, Bavail: 5},
		"more free than there is":  {Bsize: 4096, Blocks: 10, Bavail: 11},
		"more than can be counted": {Bsize: 4096, Blocks: math.MaxUint64 / 2, Bavail: 5},
	} {
		var got health.DatabaseReading
		if measured(s, &got); got.Total > 0 || got.Free > 0 || got.Absent == "" {
			t.Errorf("%s: %+v", what, got)
		}
	}
	var got health.DatabaseReading
	measured(unix.Statfs_t{Bsize: 4096, Blocks: 10, Bavail: 0, Files: 7, Ffree: 8}, &got)
	if got.Total != 40960 || got.Free > 0 || got.Inodes > 0 || got.Absent != "" {
		t.Errorf("full, with impossible inodes: %+v", got)
	}
}
