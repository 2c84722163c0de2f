// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"crypto/sha256"
	"encoding/binary"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"go.etcd.io/bbolt"

	"github.com/quorumd/quorumd/agent/etcddb"
)

func TestSnapshotWithACycleOfPagesIsRefused(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "db")
	db, err := bbolt.Open(path, 0o600, &bbolt.Options{PageSize: 4096, NoSync: true})
	if err != nil {
		t.Fatal(err)
	}
	err = db.Update(func(tx *bbolt.Tx) error {
		if _, err := tx.CreateBucket([]byte(etcddb.Meta)); err != nil {
			return err
		}
		keys, err := tx.CreateBucket([]byte(etcddb.Keys))
		for i := int64(2); err == nil && i < 5000; i++ {
			err = keys.Put(etcddb.RevisionKey(i), []byte{0x0a, 1, 'k'})
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	inspect := func(text []byte) (inspection, error) {
		sum := sha256.Sum256(text)
		if err := os.WriteFile(path, append(text[:len(text):len(text)], sum[:]...), 0o600); err != nil {
			t.Fatal(err)
		}
		file, err := os.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		defer file.Close()
		return inspectFile(t.Context(), file)
	}
	if found, err := inspect(text); err != nil || found.Contents.Revision != 4999 || found.Contents.Keys != 1 {
		t.Errorf("an intact snapshot: %+v, %v", found, err)
	}
	const branch, child = 1, 16 + 8 // the flag of a branch page, and the offset of its first child
	for at := 2 * 4096; at < len(text); at += 4096 {
		if page := text[at:]; binary.LittleEndian.Uint16(page[8:]) == branch {
			binary.LittleEndian.PutUint64(page[child:], binary.LittleEndian.Uint64(page))
		}
	}
	if _, err := inspect(text); err == nil || !strings.Contains(err.Error(), "is reached twice") {
		t.Errorf("a cycle of pages: %v", err)
	}
}
