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
	// perKey is what an etcd 3.6 that serves a snapshot takes for each key: 250 to 265 bytes were measured from a
	// million keys on. What it reads of the database is the kernel's, which takes it back.
	perKey = 270
	// perEtcd is what it takes beside them, and this process with it: 117 MiB were measured with 100,000 large keys.
	perEtcd = 100 << 20
	// noLimit is more than any: the first version of control groups has such a number where none is set.
	noLimit = 1 << 60
	// maxProc bounds what is read of a file of the kernel's.
	maxProc = 64 << 10
)

// roomy tells whether the memory that a control group leaves is enough for an etcd that serves a snapshot. One that
// runs out of it is killed, which says nothing of the snapshot.
func roomy(root string, m backup.Manifest) error {
	left, limit, limited := memoryLeft(root)
	if !limited || m.Keys <= (max(0, left)-perEtcd)/perKey { // no product: a manifest may name any number of keys
		return nil
	}
	return fmt.Errorf("%w: one that serves its %d keys takes about %.0f MB, and %d of the %d MB that quorumd's unit "+
		"may have are left; systemctl edit quorumd on this host, and raise MemoryMax=", ErrNoMemory, m.Keys,
		(perKey*float64(m.Keys)+perEtcd)/1e6, max(0, left)/1e6, limit/1e6)
}

// ErrNoMemory means that an etcd which serves a snapshot would be killed, which says nothing of the snapshot.
var ErrNoMemory = errors.New("not enough memory for the etcd of the restore test")

// memoryLeft gives how many bytes the control groups of this process leave it, without what the kernel keeps of files
// and takes back, and the limit which leaves least. It gives none where none is set, or what is set cannot be read.
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
		case kind == "memory": // the first version
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

// groupFiles is where a version of control groups has its limit, and what counts against it.
type groupFiles struct {
	base, limit string
	used        []string // lines of memory.stat that are added up; the first is always there
}

// counted is what the kernel does not take back of what counts in the second version: memory of processes, files that
// lie in memory, and what the kernel itself needs for them. Older kernels lack some of the lines.
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
		if err != nil || n < 0 { // what the others say counts all the same
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
