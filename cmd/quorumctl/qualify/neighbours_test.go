// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package qualify

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// crowd creates a /proc with processes of these names. Each has the given number of files open and writes only to the
// last one.
func crowd(t *testing.T, files int, names ...string) string {
	t.Helper()
	proc := t.TempDir()
	write := func(path, text string) {
		t.Helper()
		path = filepath.Join(proc, path)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("meminfo", "")
	for i, name := range names {
		dir := strconv.Itoa(100 + i)
		write(dir+"/comm", name+"\n")
		write(dir+"/mountinfo", "36 1 250:7 / /srv rw - ext4 /dev/srv rw\n")
		if err := os.MkdirAll(filepath.Join(proc, dir, "fd"), 0o755); err != nil {
			t.Fatal(err)
		}
		for n := range files {
			flags := "0100000"
			if n == files-1 {
				flags = "0100001"
			}
			write(fmt.Sprintf("%s/fd/%d", dir, n), "")
			write(fmt.Sprintf("%s/fdinfo/%d", dir, n), "pos:\t0\nflags:\t"+flags+"\nmnt_id:\t36\n")
		}
	}
	return proc
}

func TestEtcdOnTheSameDiskIsFoundWithinLimits(t *testing.T) {
	t.Parallel()
	same, other := unix.Mkdev(250, 7), unix.Mkdev(250, 8)
	for what, c := range map[string]struct {
		proc   string
		device uint64
		change func(*search)
		want   neighbour
	}{
		"an etcd":          {crowd(t, 3, "sh", "etcd"), same, func(*search) {}, neighbour{pid: 101}},
		"on another disk":  {crowd(t, 3, "etcd"), other, func(*search) {}, neighbour{}},
		"no etcd":          {crowd(t, 3, "sh", "etcdctl"), same, func(*search) {}, neighbour{}},
		"one without file": {crowd(t, 0, "etcd"), same, func(*search) {}, neighbour{}},
		"as many files":    {crowd(t, 3, "etcd"), same, func(s *search) { s.files = 3 }, neighbour{pid: 100}},
		"one file more": {
			crowd(t, 3, "etcd"), other, func(s *search) { s.files = 2 },
			neighbour{cut: "etcd, process 100, has too many files open to check"},
		},
		"of two together": {
			crowd(t, 3, "etcd", "etcd"), other, func(s *search) { s.files = 5 }, neighbour{cut: "too many files open"},
		},
		"many processes": {
			crowd(t, 1, "sh", "sh", "sh"), same, func(s *search) { s.processes = 2 },
			neighbour{cut: "there are too many processes to check"},
		},
		"much time": {
			crowd(t, 1, "sh"), same, func(s *search) { s.time = -1 },
			neighbour{cut: "there are too many processes to check"},
		},
	} {
		s := usualSearch()
		s.proc, s.time = c.proc, time.Minute
		c.change(s)
		found := s.etcdOn(c.device)
		if found.pid != c.want.pid || found.hidden != c.want.hidden || !strings.Contains(found.cut, c.want.cut) ||
			(found.cut == "") != (c.want.cut == "") {
			t.Errorf("%s: %+v, want %+v", what, found, c.want)
		}
	}
}
