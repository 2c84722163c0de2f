// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package restoretest

import (
	"context"
	"errors"
	"io"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/quorumd/quorumd/agent/backup"
	"github.com/quorumd/quorumd/agent/record"
)

func TestRestoreTestIsRefusedIfTheUnitsMemoryIsTooSmall(t *testing.T) {
	t.Parallel()
	unit := map[string]string{
		"proc/self/cgroup": "0::/system.slice/quorumd.service\n",
		"sys/fs/cgroup/system.slice/quorumd.service/memory.max":  "536870912\n",
		"sys/fs/cgroup/system.slice/quorumd.service/memory.stat": "file 400000000\nanon 36870912\n",
		"sys/fs/cgroup/system.slice/memory.max":                  "max\n",
	}
	for name, c := range map[string]struct {
		change map[string]string
		keys   int64
		want   string // part of the error; empty if the test is not refused
	}{
		"as shipped, a few keys":    {nil, 400_000, ""},
		"as shipped, a million":     {nil, 1_000_000, ""},
		"as shipped, the most":      {nil, 1_463_490, ""},
		"as shipped, one more":      {nil, 1_463_491, "serve its 1463491 keys, and quorumd's unit has only 500 MB of"},
		"as shipped, too many keys": {nil, math.MaxInt64, "raise MemoryMax="},
		"a slice with less": {map[string]string{
			"sys/fs/cgroup/system.slice/memory.max":  "100000000",
			"sys/fs/cgroup/system.slice/memory.stat": "anon 99000000",
		}, 1, "has only 1 MB of its 100 MB left"},
		"files in tmpfs, and the kernel's own memory": {map[string]string{
			"sys/fs/cgroup/system.slice/quorumd.service/memory.stat": "anon 6870912\nfile 400000000\nkernel 9\n" +
				"kernel_stack 1000000\npagetables 2000000\npercpu 500000\nsock 500000\nvmalloc 1000000\n" +
				"shmem 20000000\nslab_reclaimable 90000000\nslab_unreclaimable 5000000\nslab 95000000\n",
		}, 1_463_491, "has only 500 MB of its 536 MB left"},
		"a line that is no number": {map[string]string{
			"sys/fs/cgroup/system.slice/quorumd.service/memory.stat": "anon 530000000\nshmem x\n",
		}, math.MaxInt64, "has only 6 MB of its 536 MB left"},
		"a first line that is no number": {map[string]string{
			"sys/fs/cgroup/system.slice/quorumd.service/memory.stat": "anon x\nshmem 1\n",
		}, math.MaxInt64, ""},
		"too much to be added up": {map[string]string{
			"sys/fs/cgroup/system.slice/quorumd.service/memory.stat": "anon 9223372036854775807\nshmem 1\n",
		}, 1, "has only 0 MB of its 536 MB left"},
		"no limit": {map[string]string{
			"sys/fs/cgroup/system.slice/quorumd.service/memory.max": "max",
		}, math.MaxInt64, ""},
		"the first version of control groups": {map[string]string{
			"proc/self/cgroup": "4:memory:/a/quorumd\n3:cpu:/\n0::/\n",
			"sys/fs/cgroup/memory/a/quorumd/memory.limit_in_bytes": "70000000",
			"sys/fs/cgroup/memory/a/quorumd/memory.stat": "cache 5\nrss 5\ntotal_rss 9000000\n" +
				"total_shmem 1000000\n",
		}, 1, "has only 60 MB of its 70 MB left"},
		"the first version, and no limit": {map[string]string{
			"proc/self/cgroup": "4:memory:/quorumd\n",
			"sys/fs/cgroup/memory/quorumd/memory.limit_in_bytes": "9223372036854771712\n",
			"sys/fs/cgroup/memory/quorumd/memory.stat":           "total_rss 10000000\n",
		}, math.MaxInt64, ""},
		"a namespace whose root is the unit": {map[string]string{
			"proc/self/cgroup":         "0::/\n",
			"sys/fs/cgroup/memory.max": "90000000", "sys/fs/cgroup/memory.stat": "anon 1000000\n",
		}, 1, "has only 89 MB of its 90 MB left"},
		"more is used than there is": {map[string]string{
			"sys/fs/cgroup/system.slice/quorumd.service/memory.stat": "anon 9223372036854775807\n",
		}, 1, "has only 0 MB of its 536 MB left"},
		"nothing is known":   {map[string]string{"proc/self/cgroup": ""}, math.MaxInt64, ""},
		"implausible values": {map[string]string{"proc/self/cgroup": "0::/../../etc\n::\nx"}, math.MaxInt64, ""},
		"an invalid limit": {map[string]string{
			"sys/fs/cgroup/system.slice/quorumd.service/memory.max": "-5",
		}, math.MaxInt64, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			root := t.TempDir()
			for _, files := range []map[string]string{unit, c.change} {
				for path, text := range files {
					must(t, os.MkdirAll(filepath.Dir(filepath.Join(root, path)), 0o700))
					must(t, os.WriteFile(filepath.Join(root, path), []byte(text), 0o600))
				}
			}
			err := checkMemory(root, backup.Manifest{Contents: record.Contents{Keys: c.keys}})
			switch {
			case c.want == "" && err != nil, c.want != "" && !errors.Is(err, ErrNoMemory):
				t.Errorf("%v", err)
			case c.want != "" && !strings.Contains(err.Error(), c.want):
				t.Errorf("%v, want %q", err, c.want)
			}
		})
	}
}

// untouched is a store that must not be read.
type untouched struct{ t *testing.T }

func (s untouched) Get(_ context.Context, name string) (io.ReadCloser, error) {
	s.t.Errorf("%s is fetched", name)
	return nil, backup.ErrNoSnapshot
}

func (s untouched) List(context.Context) ([]backup.Object, error) {
	s.t.Error("the store is listed")
	return nil, nil
}

func TestRestoreTestChecksMemoryBeforeItFetchesTheSnapshot(t *testing.T) {
	t.Parallel()
	root, spool := t.TempDir(), t.TempDir()
	for path, text := range map[string]string{
		"proc/self/cgroup": "0::/\n", "sys/fs/cgroup/memory.max": "90000000", "sys/fs/cgroup/memory.stat": "anon 1\n",
	} {
		must(t, os.MkdirAll(filepath.Dir(filepath.Join(root, path)), 0o700))
		must(t, os.WriteFile(filepath.Join(root, path), []byte(text), 0o600))
	}
	m := backup.Manifest{Name: "one", Contents: record.Contents{Keys: 1}}
	_, err := run(t.Context(), untouched{t}, m, "/nowhere/etcd", backup.Options{Spool: spool}, root)
	if !errors.Is(err, ErrNoMemory) {
		t.Errorf("%v", err)
	}
	place{o: backup.Options{Spool: spool}}.empty(t)
}
