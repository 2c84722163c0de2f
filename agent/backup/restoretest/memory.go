// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package restoretest

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/quorumd/quorumd/agent/backup"
)

const (
	// perKey is the memory that etcd 3.6 needs per key to serve a snapshot: 250 to 265 bytes were measured with a
	// million keys or more. The database pages that etcd reads are in the page cache, which the kernel can reclaim.
	perKey = 270
	// perEtcd is the memory that etcd and this process need in addition: with 100,000 large keys, etcd as a whole used
	// 117 MiB.
	perEtcd = 100 << 20
	// noLimit is above any real limit. cgroup v1 reports a still larger number if no limit is set.
	noLimit = 1 << 60
	// maxProc limits the bytes read from a file in /proc or /sys.
	maxProc = 64 << 10
)

// checkMemory returns an error if the cgroups leave too little memory for an etcd that serves the snapshot. An etcd
// killed for lack of memory proves nothing about the snapshot.
func checkMemory(root string, m backup.Manifest) error {
	left, limit, limited := memoryLeft(root)
	if !limited || m.Keys <= (max(0, left)-perEtcd)/perKey { // the product could overflow
		return nil
	}
	return fmt.Errorf("%w: etcd needs about %.0f MB to serve its %d keys, and quorumd's unit has only %d MB of its "+
		"%d MB left; run systemctl edit quorumd on this host, and raise MemoryMax=", ErrNoMemory,
		(perKey*float64(m.Keys)+perEtcd)/1e6, m.Keys, max(0, left)/1e6, limit/1e6)
}

// ErrNoMemory means that an etcd serving the snapshot would be killed, which proves nothing about the snapshot.
var ErrNoMemory = errors.New("not enough memory for the etcd of the restore test")

// memoryLeft returns how many bytes the cgroups of this process leave it, and the limit that leaves the least. It does
// not count page cache that the kernel can reclaim as used. limited reports whether a limit was found.
func memoryLeft(root string) (left, limit int64, limited bool) {
	text, err := readProc(filepath.Join(root, "proc/self/cgroup"))
	if err != nil {
		return 0, 0, false
	}
	left = math.MaxInt64
	for line := range strings.Lines(string(text)) {
		_, rest, _ := strings.Cut(strings.TrimSpace(line), ":")
		kind, path, found := strings.Cut(rest, ":")
		files := groupFiles{base: "sys/fs/cgroup", limit: "memory.max", used: counted()}
		switch {
		case !found || !filepath.IsLocal("."+path+"/."):
			continue
		case kind == "memory": // version 1
			files = groupFiles{
				base: "sys/fs/cgroup/memory", limit: "memory.limit_in_bytes",
				used: []string{"total_rss", "total_shmem"},
			}
		case kind != "":
			continue
		}
		for dir := path; ; dir = filepath.Dir(dir) {
			most, used, set := files.read(filepath.Join(root, files.base, dir))
			if set && most-used < left {
				left, limit, limited = most-used, most, true
			}
			if dir == "/" || dir == "." {
				break
			}
		}
	}
	return left, limit, limited
}

// groupFiles names the files and counters of one cgroup version: where the limit is, and which memory counts as used.
type groupFiles struct {
	base, limit string
	used        []string // lines of memory.stat to add up; the first one always exists
}

// counted returns the counters of cgroup v2 for memory that the kernel cannot reclaim: memory of processes, files in
// tmpfs, and the kernel's own memory for them. Older kernels lack some of these counters.
func counted() []string {
	return []string{"anon", "shmem", "kernel_stack", "pagetables", "percpu", "sock", "vmalloc", "slab_unreclaimable"}
}

func (f groupFiles) read(dir string) (most, used int64, set bool) {
	text, err := readProc(filepath.Join(dir, f.limit))
	if err != nil {
		return 0, 0, false
	}
	most, err = strconv.ParseInt(string(bytes.TrimSpace(text)), 10, 64)
	if err != nil || most < 0 || most > noLimit { // "max"
		return 0, 0, false
	}
	if text, err = readProc(filepath.Join(dir, "memory.stat")); err != nil {
		return 0, 0, false
	}
	for line := range strings.Lines(string(text)) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), " ")
		if !slices.Contains(f.used, name) {
			continue
		}
		n, err := strconv.ParseInt(value, 10, 64)
		if err != nil || n < 0 { // the other lines still count
			continue
		}
		used += min(n, math.MaxInt64-used)
		set = set || name == f.used[0]
	}
	return most, used, set
}

func readProc(path string) ([]byte, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	return io.ReadAll(io.LimitReader(file, maxProc))
}
