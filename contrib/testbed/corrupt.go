// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package testbed

import (
	"bytes"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"time"

	"go.etcd.io/bbolt"
)

// Corrupt flips one bit in a value of a stopped etcd's database: the newest value that contains text. Pages of the
// database have no checksums, so reading the value does not reveal the damage.
func Corrupt(dataDir, text string) error {
	path := filepath.Join(dataDir, "member", "snap", "db")
	db, err := bbolt.Open(path, 0o600, &bbolt.Options{Timeout: 10 * time.Second})
	if err != nil {
		return fmt.Errorf("cannot corrupt %s: %w", path, err)
	}
	err = db.Update(func(tx *bbolt.Tx) error {
		keys := tx.Bucket([]byte("key"))
		c := keys.Cursor()
		for k, v := c.Last(); k != nil; k, v = c.Prev() {
			if i := bytes.LastIndex(v, []byte(text)); i >= 0 {
				changed := slices.Clone(v)
				changed[i] ^= 1
				return keys.Put(slices.Clone(k), changed)
			}
		}
		return fmt.Errorf("no value contains %q", text)
	})
	return errors.Join(err, db.Close())
}
