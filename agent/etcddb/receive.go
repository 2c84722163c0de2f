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

// SumBytes is the length of the SHA-256 that follows a database sent by etcd.
const SumBytes = sha256.Size

// The size of etcd's database is a multiple of sector, because the size of each page is. The checksum follows the last
// page.
const sector = 512

// Receive writes etcd's snapshot stream, which is a database followed by its checksum, and verifies the checksum. It
// returns the number of bytes written, and calls progress with the number of bytes of each write.
func Receive(ctx context.Context, into io.Writer, from io.Reader, progress func(int64)) (size int64, err error) {
	sum := sha256.New()
	var tail []byte // the last bytes, which may be the checksum and are not hashed yet
	buffer := make([]byte, 64<<10)
	for {
		n, err := from.Read(buffer)
		if n > 0 {
			if _, err := into.Write(buffer[:n]); err != nil {
				return size, fmt.Errorf("cannot store it on this host: %w", err)
			}
			size += int64(n)
			tail = append(tail, buffer[:n]...)
			over := max(0, len(tail)-sha256.Size)
			sum.Write(tail[:over])
			tail = append(tail[:0], tail[over:]...)
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
	case !bytes.Equal(sum.Sum(nil), tail):
		return size, fmt.Errorf("%w: its SHA-256 differs from the one at its end", ErrDamaged)
	}
	return size, nil
}
