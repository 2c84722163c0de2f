// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package backup

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"
)

// etcd's database is made of pages of at least this size. What follows the last is the checksum.
const sector = 512

// spool is a database on this host's disk. It has no name any more: it is gone with the process, whatever ends that.
type spool struct {
	*os.File

	size int64
}

// newSpool makes an empty one, and gives what is read for it: that ends where the host has too little space.
func newSpool(o Options, size int64, from io.Reader) (*spool, io.Reader, error) {
	r := &room{
		r: from, dir: o.Spool, space: o.Space, size: size,
		remedy: "free some, or set paths.state to a directory on another file system than etcd's",
	}
	if r.space == nil {
		r.space = SpaceOf
	}
	if err := r.enough(); err != nil {
		return nil, nil, err
	}
	f, err := os.CreateTemp(o.Spool, "snapshot-")
	if err != nil {
		return nil, nil, err
	}
	if err := os.Remove(f.Name()); err != nil {
		return nil, nil, errors.Join(err, f.Close())
	}
	return &spool{File: f}, r, nil
}

// fill reads a database to its end and holds it against the checksum at its end.
func (s *spool) fill(ctx context.Context, r io.Reader, progress func(int64)) error {
	sum := sha256.New()
	var behind []byte // the last bytes, which may be the checksum and are in no sum
	buffer := make([]byte, 64<<10)
	for {
		n, err := r.Read(buffer)
		if n > 0 {
			if _, err := s.Write(buffer[:n]); err != nil {
				return fmt.Errorf("cannot keep it on this host: %w", err)
			}
			s.size += int64(n)
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
			return err
		}
	}
	switch {
	case s.size%sector != sha256.Size:
		return fmt.Errorf("%w: it ended without etcd's checksum, after %d bytes", ErrDamaged, s.size)
	case !bytes.Equal(sum.Sum(nil), behind):
		return fmt.Errorf("%w: its SHA-256 is not the one at its end", ErrDamaged)
	}
	return nil
}
