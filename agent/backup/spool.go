// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package backup

import (
	"context"
	"errors"
	"io"
	"os"

	"github.com/quorumd/quorumd/agent/etcddb"
	"github.com/quorumd/quorumd/agent/record"
)

// ownFile is the mode of a file that only its owner may read.
const ownFile = 0o600

// spool is a database in a file on this host's disk. Unless newSpool got a path, the file has no name and vanishes with
// the process.
type spool struct {
	*os.File

	size int64
}

// newSpool creates an empty spool, and returns a reader that fails if the host has too little space. If a path is
// given, the spool is a new file at that path and is kept; otherwise it disappears when it is closed.
func newSpool(o Options, size int64, from io.Reader, path string) (*spool, io.Reader, error) {
	r := &room{
		r: from, dir: o.Spool, space: o.Space, size: size,
		remedy: "free some space, or set paths.state to a directory on a different file system from etcd's",
	}
	if r.space == nil {
		r.space = SpaceOf
	}
	if err := r.enough(); err != nil {
		return nil, nil, err
	}
	if path != "" {
		f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_EXCL, ownFile)
		return &spool{File: f}, r, err
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

// fill copies a database from r, and compares it with the checksum at its end.
func (s *spool) fill(ctx context.Context, r io.Reader, progress func(int64)) (err error) {
	// forget is not set: the file is read several times, so its pages should stay in the page cache.
	s.size, err = etcddb.Receive(ctx, &writeBehind{file: s.File}, r, progress)
	return err
}

// inspect returns what the database contains.
func (s *spool) inspect(ctx context.Context, progress func(int64)) (record.Contents, error) {
	return etcddb.Inspect(ctx, s.File, progress)
}
