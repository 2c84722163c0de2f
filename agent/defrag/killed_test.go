// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package defrag

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
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
	// like etcd, it has opened the file and waits for its lock
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

// An etcd that was started just before the exchange, after which the compaction was killed, has the original open.
func TestTheCleanupRestoresAnOriginalThatEtcdHasOpenOrHasChanged(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(t *testing.T, db *bbolt.DB){
		"open": func(*testing.T, *bbolt.DB) {},
		"changed": func(t *testing.T, db *bbolt.DB) {
			t.Helper()
			err := db.Update(func(tx *bbolt.Tx) error {
				return tx.Bucket([]byte(etcddb.Meta)).Put([]byte(etcddb.Term), make([]byte, 8))
			})
			if err = errors.Join(err, db.Close()); err != nil {
				t.Fatal(err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir, path := testDatabase(t)
			if _, err := Compact(t.Context(), dir, nil); err != nil {
				t.Fatal(err)
			}
			old := filepath.Join(snapDir(dir), OldName)
			want, err := os.Stat(old)
			if err != nil {
				t.Fatal(err)
			}
			past := time.Now().Add(-time.Minute)
			if err := os.Chtimes(path, past, past); err != nil { // the clock of the file system is coarse
				t.Fatal(err)
			}
			if name == "open" {
				if err := os.Chtimes(old, past.Add(-time.Minute), past.Add(-time.Minute)); err != nil {
					t.Fatal(err)
				}
			}
			db, err := bbolt.Open(old, 0o600, nil)
			if err != nil {
				t.Fatal(err)
			}
			change(t, db)
			if err := Clean(dir); err != nil {
				t.Fatal(err)
			}
			if now, err := os.Stat(path); err != nil || !os.SameFile(now, want) || len(leftovers(t, dir)) != 0 {
				t.Errorf("the original is not back: %v, %v", err, leftovers(t, dir))
			}
			if name == "open" {
				if err := db.Close(); err != nil {
					t.Fatal(err)
				}
			}
		})
	}
}

func TestTheOriginalIsDeletedWhileAnEtcdUsesTheNewDatabaseEvenIfTheClockWasSetBack(t *testing.T) {
	t.Parallel()
	dir, path := testDatabase(t)
	if _, err := Compact(t.Context(), dir, nil); err != nil {
		t.Fatal(err)
	}
	future := time.Now().Add(time.Hour)
	if err := os.Chtimes(filepath.Join(snapDir(dir), OldName), future, future); err != nil {
		t.Fatal(err)
	}
	want, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	db, err := bbolt.Open(path, 0o600, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if err := Clean(dir); err != nil {
		t.Fatal(err)
	}
	if now, err := os.Stat(path); err != nil || !os.SameFile(now, want) || len(leftovers(t, dir)) != 0 {
		t.Errorf("the new database was replaced: %v, %v", err, leftovers(t, dir))
	}
}
