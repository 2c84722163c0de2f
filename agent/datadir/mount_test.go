// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package datadir

import (
	"path/filepath"
	"testing"
)

func TestMountPointOfADirectoryIsFound(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	own, err := mountOf(dir)
	if err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{
		"/": "/", "/proc": "/proc", "/proc/self": "/proc", "/proc/no/such/directory": "/proc",
		filepath.Join(dir, "not", "made", "yet"): own,
	} {
		if got, err := mountOf(path); got != want || err != nil {
			t.Errorf("%s is mounted at %q, %v, want %q", path, got, err, want)
		}
	}
	if got, err := mountOf(filepath.Join("/proc/self/stat", "below")); err == nil {
		t.Errorf("a path below a file has the mount point %q", got)
	}
}

func TestInspectReportsTheMountPointsOfBothDirectories(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	own, err := mountOf(dir)
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct{ data, wal, want string }{
		"one":            {dir, "", own},
		"both on one":    {dir, filepath.Join(dir, "wal"), own},
		"two":            {dir, "/proc/wal", own + ", /proc"},
		"one is unknown": {dir, "/proc/self/stat/wal", ""},
	} {
		if got := Inspect(c.data, c.wal).Mount; got != c.want {
			t.Errorf("%s: mounted at %q, want %q", name, got, c.want)
		}
	}
}

func TestDiskMountedDuringInspectDoesNotCountAsEmpty(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		before, after string
		want          string
	}{
		"it stays":                        {"/data", "/data", "/data"},
		"it is mounted in the meantime":   {"/", "/data", ""},
		"it is unmounted in the meantime": {"/data", "/", ""},
	} {
		at := c.before
		got := withMounts(func() string { return at }, func() Contents {
			at = c.after
			return Contents{Empty: true}
		})
		if want := (Contents{Empty: true, Mount: c.want}); got != want {
			t.Errorf("%s: %+v, want %+v", name, got, want)
		}
	}
}
