// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package etcddb

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
)

// SumBytes is the length of what follows a database that etcd has sent: its SHA-256.
const SumBytes = sha256.Size

// etcd's database is made of pages of at least this size. What follows the last is the checksum.
const sector = 512

// Receive writes a database, as etcd's snapshot stream sends it, to its end, and holds it against the checksum there,
// which is written too. It gives the bytes that were written; progress is told of each so many.
func Receive(ctx context.Context, into io.Writer, from io.Reader, progress func(int64)) (size int64, err error) {
	sum := sha256.New()
	var behind []byte // the last bytes, which may be the checksum and are in no sum
	buffer := make([]byte, 64<<10)
	for {
		n, err := from.Read(buffer)
		if n > 0 {
			if _, err := into.Write(buffer[:n]); err != nil {
				return size, fmt.Errorf("cannot keep it on this host: %w", err)
			}
			size += int64(n)
			behind = append(behind, buffer[:n]...)
			over := max(0, len(behind)-sha256.Size)
			sum.Write(behind[:over])
			behind = append(behind[:0], behind[over:]...)
			progress(int64(n))
		}
		if errors.Is(err, io.EOF) {
			break
		}
		if err = errors.Join(err, ctx.Err()); err != nil {
			return size, err
		}
	}
	switch {
	case size%sector != SumBytes:
		return size, fmt.Errorf("%w: it ended without etcd's checksum, after %d bytes", ErrDamaged, size)
	case !bytes.Equal(sum.Sum(nil), behind):
		return size, fmt.Errorf("%w: its SHA-256 is not the one at its end", ErrDamaged)
	}
	return size, nil
}
