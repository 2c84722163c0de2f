// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package disk

import (
	"bytes"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

func laneSettings(t *testing.T) (*watched, settings) {
	t.Helper()
	return &watched{page: new(page), canary: newCanary()}, settings{dir: t.TempDir(), verify: time.Hour}
}

func inode(t *testing.T, path string) uint64 {
	t.Helper()
	var stat unix.Stat_t
	if err := unix.Stat(path, &stat); err != nil {
		t.Fatal(err)
	}
	return stat.Ino
}

func TestAFullWALFileIsReplaced(t *testing.T) {
	t.Parallel()
	w, set := laneSettings(t)
	l := newWALLane(w, set)
	defer closeFD(&l.fd)
	mustRun(t, l.run)
	before := inode(t, l.path)
	l.offset = walBytes - walRecord - 1 // room for one more record
	mustRun(t, l.run)
	if inode(t, l.path) != before {
		t.Error("the file changed before it was full")
	}
	mustRun(t, l.run)
	if inode(t, l.path) == before || l.offset != walRecord {
		t.Errorf("the file did not change; the offset is %d", l.offset)
	}
	if _, err := os.Stat(l.next); !os.IsNotExist(err) {
		t.Errorf("the next file is left: %v", err)
	}
	if samples, _, _ := w.page.pull(0); len(samples) != 3 {
		t.Errorf("%d samples, want one per write and none for the change", len(samples))
	}
	if info, err := os.Stat(l.path); err != nil || info.Size() != walBytes {
		t.Errorf("%v, %v", info, err)
	}
}

func TestAFailedNewWALFileLeavesNothing(t *testing.T) {
	t.Parallel()
	w, set := laneSettings(t)
	l := newWALLane(w, set)
	if err := os.MkdirAll(filepath.Join(l.path, "in the way"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := l.run(); err == nil {
		t.Fatal("a directory was replaced by a file")
	}
	if _, err := os.Stat(l.next); !os.IsNotExist(err) {
		t.Errorf("the next file is left: %v", err)
	}
	if err := os.RemoveAll(l.path); err != nil {
		t.Fatal(err)
	}
	mustRun(t, l.run)
	closeFD(&l.fd)
}

func TestTheDirectLaneRotatesThroughItsFile(t *testing.T) {
	t.Parallel()
	for _, buffered := range []bool{false, true} {
		t.Run(map[bool]string{false: "as the file system allows", true: "through the page cache"}[buffered],
			func(t *testing.T) {
				t.Parallel()
				w, set := laneSettings(t)
				l := directLaneOf(t, w, set)
				l.buffered = buffered
				for range 3 {
					mustRun(t, l.run)
				}
				l.seq = directBlocks - 1
				mustRun(t, l.run)
				if err := l.readBack(); err != nil {
					t.Errorf("reading back: %v", err)
				}
				if direct := w.page.direct.Load() == 1; direct == l.buffered {
					t.Errorf("the page has direct %v, buffered is %v", direct, l.buffered)
				}
				content, err := os.ReadFile(l.path)
				if err != nil || len(content) != directBlocks*blockSize {
					t.Fatalf("%d bytes, %v", len(content), err)
				}
				for place, seq := range map[int]uint64{0: directBlocks, 1: 1, 2: 2, 3: 3, 4: 0} {
					if err := checkBlock(content[place*blockSize:][:blockSize], seq); err != nil {
						t.Errorf("block %d does not hold write %d", place, seq)
					}
				}
			})
	}
}

func directLaneOf(t *testing.T, w *watched, set settings) *directLane {
	t.Helper()
	l, err := newDirectLane(w, set)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		closeFD(&l.fd)
		if err := unix.Munmap(l.block); err != nil {
			t.Error(err)
		}
	})
	return l
}

func TestTheDirectFileIsFilledOnlyOnce(t *testing.T) {
	t.Parallel()
	w, set := laneSettings(t)
	l := directLaneOf(t, w, set)
	mustRun(t, l.run)
	before := inode(t, l.path)
	closeFD(&l.fd) // a lane closes its file after an error
	mustRun(t, l.run)
	content, err := os.ReadFile(l.path)
	if err != nil {
		t.Fatal(err)
	}
	if inode(t, l.path) != before || checkBlock(content[2*blockSize:][:blockSize], 2) != nil {
		t.Error("the file was not reused")
	}
	closeFD(&l.fd)
	if err := os.Truncate(l.path, 17); err != nil {
		t.Fatal(err)
	}
	mustRun(t, l.run)
	if info, err := os.Stat(l.path); err != nil || info.Size() != directBlocks*blockSize {
		t.Errorf("a file that lost its blocks was not rewritten: %v, %v", info, err)
	}
}

func TestAWriteThatNeverArrivedIsFound(t *testing.T) {
	t.Parallel()
	w, set := laneSettings(t)
	l := directLaneOf(t, w, set)
	mustRun(t, l.run)
	old := bytes.Clone(l.block)
	l.seq += directBlocks - 1 // the same offset in the next round
	mustRun(t, l.run)
	file, err := os.OpenFile(l.path, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	if _, err := file.WriteAt(old, l.offset()); err != nil {
		t.Fatal(err)
	}
	l.verify = 0
	if err := l.run(); err != syscall.EBADMSG {
		t.Errorf("the intact previous block: %v", err)
	}
}

func TestDamageInAnyPartOfABlockIsFound(t *testing.T) {
	t.Parallel()
	block := make([]byte, blockSize)
	fillBlock(block, 42)
	if err := checkBlock(block, 42); err != nil {
		t.Fatal(err)
	}
	for place := range block {
		block[place] ^= 1
		if checkBlock(block, 42) == nil {
			t.Fatalf("a flipped bit in byte %d is not found", place)
		}
		block[place] ^= 1
	}
}

func mustRun(t *testing.T, run func() error) {
	t.Helper()
	if err := run(); err != nil {
		t.Fatal(err)
	}
}

func TestTheNearestAncestorOfAMissingTargetCounts(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	want, err := deviceOf(dir)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := nearestDevice(filepath.Join(dir, "a", "b", "c")); got != want || err != nil {
		t.Errorf("got %#x, %v; want %#x", got, err, want)
	}
	proc, err := nearestDevice("/proc/nothing/here")
	if err != nil || proc == want {
		t.Errorf("/proc has %#x, %v", proc, err)
	}
}
