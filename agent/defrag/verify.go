// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package defrag

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	"go.etcd.io/bbolt"
)

// checkEvery is the number of keys after which a comparison checks its context.
const checkEvery = 4096

// verify opens the new file and compares every bucket, key and value of both databases.
func (d directory) verify(ctx context.Context, source opened) (copied opened, err error) {
	if copied, err = d.openDB(newName); err != nil {
		return copied, err
	}
	err = source.db.View(func(a *bbolt.Tx) error {
		return copied.db.View(func(b *bbolt.Tx) error {
			return equal(ctx, a.Cursor(), b.Cursor(), a.Bucket, b.Bucket)
		})
	})
	if err != nil {
		copied.close()
	}
	return copied, err
}

// equal returns an error unless both cursors visit the same keys with the same values and the same buckets.
func equal(ctx context.Context, a, b *bbolt.Cursor, bucketA, bucketB func([]byte) *bbolt.Bucket) error {
	ka, va := a.First()
	kb, vb := b.First()
	for n := 1; ; n++ {
		switch {
		case ka == nil && kb == nil:
			return nil
		case !bytes.Equal(ka, kb) || (va == nil) != (vb == nil) || !bytes.Equal(va, vb):
			return errors.New("it differs from the original")
		case va == nil:
			inA, inB := bucketA(ka), bucketB(kb)
			if inA == nil || inB == nil || inA.Sequence() != inB.Sequence() {
				return fmt.Errorf("bucket %.40q differs from the original", ka)
			}
			if err := equal(ctx, inA.Cursor(), inB.Cursor(), inA.Bucket, inB.Bucket); err != nil {
				return err
			}
		}
		if n%checkEvery == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
		ka, va = a.Next()
		kb, vb = b.Next()
	}
}
