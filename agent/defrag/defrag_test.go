// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package defrag

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.etcd.io/bbolt"
	"golang.org/x/sys/unix"

	"github.com/quorumd/quorumd/agent/child"
	"github.com/quorumd/quorumd/agent/etcddb"
	"github.com/quorumd/quorumd/agent/record"
)

// TestMain also runs the test binary as a child that compacts a database. The child writes each phase that it reaches
// to its standard output, and continues when it reads a byte from its standard input.
func TestMain(m *testing.M) {
	if len(os.Args) == 3 && os.Args[1] == "compact-in-phases" {
		_, err := compact(context.Background(), os.Args[2], nil, func(p phase) {
			fmt.Println(p)
			_, _ = os.Stdin.Read(make([]byte, 1))
		})
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	if len(os.Args) == 3 && os.Args[1] == "compact-with-limit" { // 1 MiB for each file
		limit := unix.Rlimit{Cur: 1 << 20, Max: 1 << 20}
		if err := unix.Setrlimit(unix.RLIMIT_FSIZE, &limit); err != nil {
			panic(err)
		}
		if _, err := Compact(context.Background(), os.Args[2], nil); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// testDatabase creates a data directory with a database of about 6 MiB, 2 MiB of it in use. It returns the data
// directory and the path of the database.
func testDatabase(t *testing.T) (dir, path string) {
	t.Helper()
	dir = t.TempDir()
	path = filepath.Join(snapDir(dir), database)
	if err := os.MkdirAll(snapDir(dir), 0o700); err != nil {
		t.Fatal(err)
	}
	db, err := bbolt.Open(path, 0o600, &bbolt.Options{NoSync: true})
	if err != nil {
		t.Fatal(err)
	}
	err = db.Update(func(tx *bbolt.Tx) error {
		keys, err := tx.CreateBucket([]byte(etcddb.Keys))
		if err != nil {
			return err
		}
		for i := range int64(600) {
			value := []byte{0x0a, 2, byte(i), byte(i >> 8), 0x2a} // protobuf: the key, and the tag of the value
			value = binary.AppendUvarint(value, 10_000)
			if err := keys.Put(etcddb.RevisionKey(i+2), append(value, make([]byte, 10_000)...)); err != nil {
				return err
			}
		}
		meta, err := tx.CreateBucket([]byte(etcddb.Meta))
		if err != nil {
			return err
		}
		return meta.Put([]byte(etcddb.ConsistentIndex), binary.BigEndian.AppendUint64(nil, 1))
	})
	for i := int64(0); err == nil && i < 600; i += 3 {
		err = db.Update(func(tx *bbolt.Tx) error {
			keys := tx.Bucket([]byte(etcddb.Keys))
			return errors.Join(keys.Delete(etcddb.RevisionKey(i+2)), keys.Delete(etcddb.RevisionKey(i+3)))
		})
	}
	if err == nil {
		err = db.Close()
	}
	if err != nil {
		t.Fatal(err)
	}
	return dir, path
}

// contentsOf returns the contents of a database, which must be complete.
func contentsOf(t *testing.T, path string) record.Contents {
	t.Helper()
	file, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	c, err := etcddb.Inspect(t.Context(), file, func(int64) {})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// leftovers returns the names of all files in the directory of the database except "db".
func leftovers(t *testing.T, dir string) (names []string) {
	t.Helper()
	entries, err := os.ReadDir(snapDir(dir))
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if e.Name() != database {
			names = append(names, e.Name())
		}
	}
	return names
}

func sizeOf(t *testing.T, path string) int64 {
	t.Helper()
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	return info.Size()
}

func TestACompactedDatabaseIsSmallerAndHasTheSameContents(t *testing.T) {
	t.Parallel()
	dir, path := testDatabase(t)
	before, size := contentsOf(t, path), sizeOf(t, path)
	r, err := Compact(t.Context(), dir, &child.Progress{})
	if err != nil {
		t.Fatal(err)
	}
	if after := contentsOf(t, path); after != before {
		t.Errorf("the contents are %+v, and were %+v", after, before)
	}
	if now := sizeOf(t, path); r.Before != size || r.After != now || now > size/2 || r.InUse > size/2 {
		t.Errorf("%+v: the file has %d bytes, and had %d", r, now, size)
	}
	if info, err := os.Stat(path); err != nil || info.Mode() != 0o600 {
		t.Errorf("mode %v, %v", info.Mode(), err)
	}
	if got := leftovers(t, dir); len(got) != 1 || got[0] != OldName {
		t.Errorf("left: %v", got)
	}
	if old := contentsOf(t, filepath.Join(snapDir(dir), OldName)); old != before {
		t.Errorf("the old database has %+v", old)
	}
	if err := Clean(dir); err != nil || len(leftovers(t, dir)) != 0 {
		t.Errorf("after the cleanup: %v, %v", leftovers(t, dir), err)
	}
}

func TestARunningEtcdIsNotDefragmented(t *testing.T) {
	t.Parallel()
	dir, path := testDatabase(t)
	db, err := bbolt.Open(path, 0o600, nil)
	if err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	_, err = Compact(t.Context(), dir, nil)
	if err == nil || !strings.Contains(err.Error(), "etcd is running") || time.Since(began) > 4*lockWait {
		t.Errorf("after %s: %v", time.Since(began), err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	file, err := os.OpenFile(path, os.O_RDWR, 0) // like an etcd that is about to lock the database
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	if _, err = Compact(t.Context(), dir, nil); err == nil || !strings.Contains(err.Error(), "etcd is running") {
		t.Errorf("opened for writing: %v", err)
	}
}

func TestTwoCompactionsExcludeEachOther(t *testing.T) {
	t.Parallel()
	dir, _ := testDatabase(t)
	c := startPhases(t, dir)
	c.next()
	for name, try := range map[string]func() error{
		"compact": func() error { _, err := Compact(t.Context(), dir, nil); return err },
		"clean":   func() error { return Clean(dir) },
	} {
		if err := try(); err == nil || !strings.Contains(err.Error(), "still running") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestAFailedCompactionLeavesTheDatabaseAndNoOtherFile(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		prepare func(t *testing.T, dir, path string)
		run     func(t *testing.T, dir string) string
		want    string
		left    int
	}{
		"no space left": {
			nil, func(t *testing.T, dir string) string {
				t.Helper()
				text, err := exec.Command("/proc/self/exe", "compact-with-limit", dir).CombinedOutput()
				if err == nil {
					t.Error("it succeeded")
				}
				return string(text)
			}, "file too large → free space", 0,
		},
		"the second meta page and the first are damaged": {
			func(t *testing.T, _, path string) {
				t.Helper()
				overwrite(t, path, 0, 8192)
			}, nil, "cannot open the database", 0,
		},
		"all pages after the first two are damaged": {
			func(t *testing.T, _, path string) {
				t.Helper()
				overwrite(t, path, 8192, 1<<20)
			}, nil, "damaged", 0,
		},
		"the database is a symbolic link": {
			func(t *testing.T, dir, path string) {
				t.Helper()
				if err := errors.Join(os.Rename(path, filepath.Join(dir, "elsewhere")),
					os.Symlink(filepath.Join(dir, "elsewhere"), path)); err != nil {
					t.Fatal(err)
				}
			}, nil, "too many levels of symbolic links", 0,
		},
		"the database is a FIFO": {
			func(t *testing.T, _, path string) {
				t.Helper()
				if err := errors.Join(os.Remove(path), unix.Mkfifo(path, 0o600)); err != nil {
					t.Fatal(err)
				}
			}, nil, "is not a regular file", 0,
		},
		"a directory has the name of the new file": {
			func(t *testing.T, dir, _ string) {
				t.Helper()
				if err := os.MkdirAll(filepath.Join(snapDir(dir), newName, "full"), 0o700); err != nil {
					t.Fatal(err)
				}
			}, nil, "cannot remove the files of an earlier defragmentation", 1,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir, path := testDatabase(t)
			if c.prepare != nil {
				c.prepare(t, dir, path)
			}
			before, err := os.Lstat(path)
			if err != nil {
				t.Fatal(err)
			}
			var why string
			if c.run != nil {
				why = c.run(t, dir)
			} else if _, err := Compact(t.Context(), dir, nil); err != nil {
				why = err.Error()
			}
			if !strings.Contains(why, c.want) {
				t.Errorf("it failed with %q, want %q", why, c.want)
			}
			after, err := os.Lstat(path)
			if err != nil || !os.SameFile(before, after) || !after.ModTime().Equal(before.ModTime()) {
				t.Errorf("the database has changed: %v", err)
			}
			if got := leftovers(t, dir); len(got) != c.left {
				t.Errorf("left: %v", got)
			}
		})
	}
}

// overwrite fills a part of a file with bytes that bbolt does not write.
func overwrite(t *testing.T, path string, at, n int64) {
	t.Helper()
	file, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	if _, err := file.WriteAt(bytes.Repeat([]byte{0xa5}, int(n)), at); err != nil {
		t.Fatal(err)
	}
}

// A different process may have created symbolic links under the names of the files that are removed. The targets of the
// links must stay.
func TestNoLinkIsFollowed(t *testing.T) {
	t.Parallel()
	dir, path := testDatabase(t)
	before := contentsOf(t, path)
	target := filepath.Join(dir, "target")
	if err := os.WriteFile(target, []byte("precious"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{newName, OldName} {
		if err := os.Symlink(target, filepath.Join(snapDir(dir), name)); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := Compact(t.Context(), dir, nil); err != nil {
		t.Fatal(err)
	}
	if text, err := os.ReadFile(target); err != nil || string(text) != "precious" {
		t.Errorf("the target of a link has %q, %v", text, err)
	}
	if after := contentsOf(t, path); after != before {
		t.Errorf("the contents are %+v, and were %+v", after, before)
	}
}

func TestACopyThatDiffersNeverTakesThePlaceOfTheOriginal(t *testing.T) {
	t.Parallel()
	dir, path := testDatabase(t)
	before := contentsOf(t, path)
	_, err := compact(t.Context(), dir, nil, func(p phase) {
		if p != phaseWritten {
			return
		}
		db, err := bbolt.Open(filepath.Join(snapDir(dir), newName), 0o600, nil)
		if err != nil {
			t.Fatal(err)
		}
		err = db.Update(func(tx *bbolt.Tx) error { return tx.Bucket([]byte(etcddb.Meta)).Put([]byte("x"), nil) })
		if err := errors.Join(err, db.Close()); err != nil {
			t.Fatal(err)
		}
	})
	if err == nil || !strings.Contains(err.Error(), "differs from the original") {
		t.Errorf("it was accepted: %v", err)
	}
	if after := contentsOf(t, path); after != before || len(leftovers(t, dir)) != 0 {
		t.Errorf("%+v, left: %v", after, leftovers(t, dir))
	}
}

func TestACopyThatDiffersIsDetected(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(tx *bbolt.Tx) error{
		"a value": func(tx *bbolt.Tx) error {
			return tx.Bucket([]byte(etcddb.Meta)).Put([]byte(etcddb.ConsistentIndex), []byte("12345678"))
		},
		"a key too few": func(tx *bbolt.Tx) error {
			return tx.Bucket([]byte(etcddb.Keys)).Delete(etcddb.RevisionKey(4))
		},
		"a key too many": func(tx *bbolt.Tx) error { return tx.Bucket([]byte(etcddb.Meta)).Put([]byte("zz"), nil) },
		"a bucket":       func(tx *bbolt.Tx) error { _, err := tx.CreateBucket([]byte("zz")); return err },
		"a sequence":     func(tx *bbolt.Tx) error { return tx.Bucket([]byte(etcddb.Keys)).SetSequence(7) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir, _ := testDatabase(t)
			d, err := open(dir)
			if err != nil {
				t.Fatal(err)
			}
			defer d.file.Close()
			source, err := d.openSource()
			if err != nil {
				t.Fatal(err)
			}
			defer source.close()
			if err := d.write(source); err != nil {
				t.Fatal(err)
			}
			copied, err := d.verify(t.Context(), source)
			if err != nil {
				t.Fatalf("an equal copy: %v", err)
			}
			copied.close()
			db, err := bbolt.Open(d.name(newName), 0o600, nil)
			if err != nil {
				t.Fatal(err)
			}
			if err := errors.Join(db.Update(change), db.Close()); err != nil {
				t.Fatal(err)
			}
			if _, err := d.verify(t.Context(), source); err == nil || !strings.Contains(err.Error(), "differs") {
				t.Errorf("it was accepted: %v", err)
			}
		})
	}
}
