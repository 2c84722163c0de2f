// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package etcddb

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"go.etcd.io/bbolt"
)

const testPage = 4096

// written returns the bytes of a database with that many keys, as bbolt writes it.
func written(t testing.TB, keys, valueBytes int) []byte {
	t.Helper()
	path := filepath.Join(t.TempDir(), "db")
	db, err := bbolt.Open(path, 0o600, &bbolt.Options{PageSize: testPage, NoSync: true})
	if err != nil {
		t.Fatal(err)
	}
	for range 2 { // the second transaction frees pages
		err = db.Update(func(tx *bbolt.Tx) error {
			meta, err := tx.CreateBucketIfNotExists([]byte(Meta))
			if err != nil {
				return err
			}
			b, err := tx.CreateBucketIfNotExists([]byte(Keys))
			if err != nil {
				return err
			}
			for i := range keys {
				value := []byte{0x0a, 1, byte(i), 0x2a} // the name of the key, and its value
				value = binary.AppendUvarint(value, uint64(valueBytes))
				value = append(value, make([]byte, valueBytes)...)
				if err := b.Put(RevisionKey(int64(i)+2), value); err != nil {
					return err
				}
			}
			return meta.Put([]byte(ConsistentIndex), make([]byte, 8))
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// inspected writes the bytes to a file, inspects it and opens it for writing.
func inspected(t testing.TB, text []byte) (inspect, open error) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "db")
	if err := os.WriteFile(path, text, 0o600); err != nil {
		t.Fatal(err)
	}
	file, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	_, inspect = Inspect(t.Context(), file, func(int64) {})
	db, open := Open(path, bbolt.Options{NoSync: true})
	if open == nil {
		open = db.Close()
	}
	return inspect, open
}

// find returns the last page of that type that has elements.
func find(t testing.TB, text []byte, kind uint16) []byte {
	t.Helper()
	for at := len(text) - testPage; at >= 2*testPage; at -= testPage {
		page := text[at:]
		if le16(page[8:]) == kind && (le16(page[10:]) > 0) && le64(page) == uint64(at/testPage) {
			return page
		}
	}
	t.Fatalf("there is no page of type %d", kind)
	return nil
}

// metas calls do with each meta page, and updates its checksum.
func metas(text []byte, do func(m []byte)) {
	for i := range 2 {
		m := text[i*testPage+headerBytes:]
		do(m)
		sum := fnv.New64a()
		sum.Write(m[:metaBytes])
		binary.LittleEndian.PutUint64(m[metaBytes:], sum.Sum64())
	}
}

func TestDatabaseWrittenByBboltPasses(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ keys, size int }{{0, 0}, {1, 1}, {100, 10}, {5000, 20}, {20, 100 << 10}} {
		if inspect, open := inspected(t, written(t, c.keys, c.size)); inspect != nil || open != nil {
			t.Errorf("%d keys of %d bytes: %v, %v", c.keys, c.size, inspect, open)
		}
	}
}

func TestDatabaseWithEndlessPagesIsAnErrorAndNotWalked(t *testing.T) {
	t.Parallel()
	put32, put64 := binary.LittleEndian.PutUint32, binary.LittleEndian.PutUint64
	for name, c := range map[string]struct {
		change  func(t *testing.T, text []byte)
		wantErr string
	}{
		"a branch is its own child": {func(t *testing.T, text []byte) {
			page := find(t, text, branchPage)
			put64(page[headerBytes+8:], le64(page))
		}, "is reached twice"},
		"two children are the same": {func(t *testing.T, text []byte) {
			page := find(t, text, branchPage)
			put64(page[headerBytes+elementBytes+8:], le64(page[headerBytes+8:]))
		}, "is reached twice"},
		"a child beyond the end": {func(t *testing.T, text []byte) {
			put64(find(t, text, branchPage)[headerBytes+8:], 1<<40)
		}, "is out of range"},
		"a child that is a meta page": {func(t *testing.T, text []byte) {
			put64(find(t, text, branchPage)[headerBytes+8:], 1)
		}, "is out of range"},
		"a page with the ID of a different page": {func(t *testing.T, text []byte) {
			put64(find(t, text, leafPage), 3)
		}, "has the ID 3 and"},
		"a page with too many following pages": {func(t *testing.T, text []byte) {
			put32(find(t, text, leafPage)[12:], 1<<31)
		}, "following pages"},
		"a leaf with too many elements": {func(t *testing.T, text []byte) {
			binary.LittleEndian.PutUint16(find(t, text, leafPage)[10:], 0xFFFF)
		}, "65535 elements"},
		"a branch without elements": {func(t *testing.T, text []byte) {
			binary.LittleEndian.PutUint16(find(t, text, branchPage)[10:], 0)
		}, "neither a leaf nor a branch with elements"},
		"a value beyond its page": {func(t *testing.T, text []byte) {
			put32(find(t, text, leafPage)[headerBytes+12:], 1<<30)
		}, "ends beyond the page"},
		"a key beyond its page": {func(t *testing.T, text []byte) {
			put32(find(t, text, branchPage)[headerBytes+4:], 1<<30)
		}, "ends beyond the page"},
		"a freelist that is too long": {func(t *testing.T, text []byte) {
			page := find(t, text, freelistPage)
			binary.LittleEndian.PutUint16(page[10:], manyFree)
			put64(page[headerBytes:], 1<<40)
		}, "free pages"},
		"a freelist that is a leaf": {func(t *testing.T, text []byte) {
			leaf := le64(find(t, text, leafPage))
			metas(text, func(m []byte) { put64(m[32:], leaf) })
		}, "free pages"},
		"more pages than the file has": {func(_ *testing.T, text []byte) {
			metas(text, func(m []byte) { put64(m[40:], 1<<50) })
		}, "more than fit"},
		"an invalid page size": {func(_ *testing.T, text []byte) {
			metas(text, func(m []byte) { put32(m[8:], 100) })
		}, "100 bytes"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			text := written(t, 5000, 20)
			c.change(t, text)
			inspect, open := inspected(t, text)
			if !errors.Is(inspect, ErrDamaged) || !strings.Contains(fmt.Sprint(inspect), c.wantErr) {
				t.Errorf("Inspect accepts it: %v", inspect)
			}
			if open == nil {
				t.Error("Open accepts it")
			}
		})
	}
}

func FuzzPages(f *testing.F) {
	f.Add(written(f, 3, 10), uint32(0), uint64(0))
	big := written(f, 300, 20)
	for _, at := range []uint32{8, 10, 12, 16, 24, 32} {
		f.Add(big, at+3*testPage, uint64(3))
		f.Add(big, at+5*testPage, uint64(0xFFFF))
	}
	f.Fuzz(func(t *testing.T, text []byte, at uint32, value uint64) {
		if len(text) > 1<<20 {
			return
		}
		if int64(at)+8 <= int64(len(text)) {
			binary.LittleEndian.PutUint64(text[at:], value)
		}
		_, _ = inspected(t, text) // must return, with or without an error
	})
}

// inOrder counts how many times a reader moves backwards in a file.
type inOrder struct {
	io.ReaderAt
	at   int64
	back int
}

func (r *inOrder) ReadAt(into []byte, at int64) (int, error) {
	if at < r.at {
		r.back++
	}
	r.at = at
	return r.ReaderAt.ReadAt(into, at)
}

func TestPagesAreReadInTheOrderOfTheFile(t *testing.T) {
	t.Parallel()
	text := written(t, 20000, 100)
	file := &inOrder{ReaderAt: bytes.NewReader(text)}
	if err := CheckPages(file, int64(len(text)), testPage); err != nil {
		t.Fatal(err)
	}
	if pages := len(text) / testPage; pages < 500 || file.back > 8 { // once per level, and for the list of free pages
		t.Errorf("reading %d pages goes back %d times", pages, file.back)
	}
}
