// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package defrag

import (
	"bytes"
	"encoding/binary"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"go.etcd.io/bbolt"

	"github.com/quorumd/quorumd/agent/etcddb"
)

func TestACompactionKilledAtAnyPointLeavesACompleteDatabaseAndIsRepeated(t *testing.T) {
	t.Parallel()
	for _, kill := range []phase{phaseBegun, phaseWritten, phaseVerified, phaseLinked, phaseReplaced} {
		t.Run(string(kill), func(t *testing.T) {
			t.Parallel()
			dir, path := testDatabase(t)
			before := contentsOf(t, path)
			c := startPhases(t, dir)
			for c.next() != kill {
				c.goOn()
			}
			if err := c.cmd.Process.Kill(); err != nil {
				t.Fatal(err)
			}
			_ = c.cmd.Wait()
			if after := contentsOf(t, path); after != before {
				t.Errorf("the contents are %+v, and were %+v", after, before)
			}
			if _, err := Compact(t.Context(), dir, nil); err != nil {
				t.Fatal(err)
			}
			if after := contentsOf(t, path); after != before {
				t.Errorf("after another compaction, the contents are %+v, and were %+v", after, before)
			}
			if got := leftovers(t, dir); len(got) != 1 || got[0] != OldName {
				t.Errorf("left: %v", got)
			}
		})
	}
}

// phases is a child that stops at each phase of a compaction.
type phases struct {
	t      *testing.T
	cmd    *exec.Cmd
	in     *os.File
	out    *os.File
	stderr bytes.Buffer
}

func startPhases(t *testing.T, dir string) *phases {
	t.Helper()
	c := &phases{t: t, cmd: exec.Command("/proc/self/exe", "compact-in-phases", dir)}
	stdin, in, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	out, stdout, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	c.cmd.Stdin, c.cmd.Stdout, c.cmd.Stderr, c.in, c.out = stdin, stdout, &c.stderr, in, out
	if err := c.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.cmd.Process.Kill(); in.Close(); out.Close() })
	stdin.Close()
	stdout.Close()
	return c
}

// next waits for the next phase, and returns it.
func (c *phases) next() phase {
	c.t.Helper()
	line := make([]byte, 64)
	n, err := c.out.Read(line)
	if err != nil {
		_ = c.cmd.Wait()
		c.t.Fatalf("the child has ended: %s", c.stderr.String())
	}
	return phase(strings.TrimSpace(string(line[:n])))
}

func (c *phases) goOn() {
	if _, err := c.in.Write([]byte("\n")); err != nil {
		c.t.Fatal(err)
	}
}

// finish lets the child continue to its end, and returns its error text.
func (c *phases) finish() string {
	c.t.Helper()
	_ = c.in.Close()
	if err := c.cmd.Wait(); err == nil {
		return ""
	}
	return c.stderr.String()
}

func TestAnEtcdThatIsStartedMeanwhileKeepsItsDatabase(t *testing.T) {
	t.Parallel()
	dir, path := testDatabase(t)
	before := contentsOf(t, path)
	c := startPhases(t, dir)
	for c.next() != phaseLinked {
		c.goOn()
	}
	// like an etcd that has opened the file and waits for its lock
	opened := make(chan *os.File, 1)
	locked := make(chan *bbolt.DB, 1)
	go func() {
		db, err := bbolt.Open(path, 0o600, &bbolt.Options{
			OpenFile: func(path string, flag int, mode fs.FileMode) (*os.File, error) {
				file, err := os.OpenFile(path, flag, mode)
				opened <- file
				return file, err
			},
		})
		if err != nil {
			t.Error(err)
		}
		locked <- db
	}()
	file := <-opened
	if why := c.finish(); !strings.Contains(why, "etcd was started during the defragmentation, and keeps") {
		t.Errorf("the compaction ended with %q", why)
	}
	db := <-locked
	now, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	if own, err := file.Stat(); err != nil || !os.SameFile(own, now) {
		t.Error("etcd has a file open that is no longer its database")
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	if after := contentsOf(t, path); after != before {
		t.Errorf("the contents are %+v, and were %+v", after, before)
	}
	if got := leftovers(t, dir); len(got) != 0 {
		t.Errorf("left: %v", got)
	}
}

// advance stores a consistent index in a database, as etcd does with each change.
func advance(t *testing.T, db *bbolt.DB, index uint64) {
	t.Helper()
	value := binary.BigEndian.AppendUint64(nil, index)
	err := db.Update(func(tx *bbolt.Tx) error {
		return tx.Bucket([]byte(etcddb.Meta)).Put([]byte(etcddb.ConsistentIndex), value)
	})
	if err != nil {
		t.Fatal(err)
	}
}

// The compaction was killed after the exchange. An etcd may have opened the original just before the exchange, or the
// new database after it.
func TestTheCleanupKeepsTheDatabaseWithWhichEtcdHasContinued(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		file     string // the file with which etcd has continued; empty if no etcd was started
		index    uint64
		running  bool // etcd is still running
		original bool // the original becomes the database again
	}{
		"no etcd was started":              {"", 0, false, false},
		"etcd runs with the original":      {OldName, 0, true, true},
		"etcd has run with the original":   {OldName, 2, false, true},
		"it has changed nothing":           {OldName, 1, false, false},
		"etcd runs with the new database":  {database, 2, true, false},
		"etcd ran with the new database":   {database, 2, false, false},
		"it has changed nothing there yet": {database, 1, false, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir, path := testDatabase(t)
			if _, err := Compact(t.Context(), dir, nil); err != nil {
				t.Fatal(err)
			}
			old := filepath.Join(snapDir(dir), OldName)
			// misleading file times, because the clock may have been set
			future := time.Now().Add(time.Hour)
			if c.original {
				future = future.Add(-2 * time.Hour)
			}
			want, err := os.Stat(path)
			if c.original {
				want, err = os.Stat(old)
			}
			if err != nil {
				t.Fatal(err)
			}
			if c.file != "" {
				db, err := bbolt.Open(filepath.Join(snapDir(dir), c.file), 0o600, nil)
				if err != nil {
					t.Fatal(err)
				}
				if advance(t, db, c.index); c.running {
					t.Cleanup(func() { _ = db.Close() })
				} else if err := db.Close(); err != nil {
					t.Fatal(err)
				}
			}
			if err := os.Chtimes(old, future, future); err != nil {
				t.Fatal(err)
			}
			if err := Clean(dir); err != nil {
				t.Fatal(err)
			}
			if now, err := os.Stat(path); err != nil || !os.SameFile(now, want) || len(leftovers(t, dir)) != 0 {
				t.Errorf("the database is another file: %v; left: %v", err, leftovers(t, dir))
			}
		})
	}
}

func TestTheCleanupKeepsTheOriginalOfADamagedDatabase(t *testing.T) {
	t.Parallel()
	dir, path := testDatabase(t)
	if _, err := Compact(t.Context(), dir, nil); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte("damaged"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := Clean(dir); err == nil || !slices.Contains(leftovers(t, dir), OldName) {
		t.Errorf("%v; left: %v", err, leftovers(t, dir))
	}
}
