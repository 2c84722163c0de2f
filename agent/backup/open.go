// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package backup

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"

	"github.com/quorumd/quorumd/agent/etcddb"
)

// ErrDamaged means that a snapshot does not match its manifest.
var ErrDamaged = etcddb.ErrDamaged

// Open returns the database of a snapshot as etcd's snapshot stream sent it: the file and its SHA-256 in the 32 bytes
// after it, as etcdutl expects. Do not use the data before a read has returned [io.EOF], because only then is it known
// to be complete and unchanged. If the data does not match the manifest, the error is [ErrDamaged].
func Open(ctx context.Context, store Source, m Manifest, with Identities) (io.ReadCloser, error) {
	cannot := func(err error) error { return fmt.Errorf("cannot open the snapshot %s: %w", m.Name, err) }
	if err := m.check(m.Name); err != nil {
		return nil, cannot(err)
	}
	object, err := store.Get(ctx, m.DataName())
	if err != nil {
		return nil, cannot(err)
	}
	o := &opened{
		manifest: m, object: object,
		stored: &counted{r: io.LimitReader(whileWanted{ctx, object}, m.StoredSize+1), sum: sha256.New()},
	}
	if o.unsealed, err = unseal(o.stored, m.Encrypted(), with); err != nil {
		err = o.classify(err)
		object.Close()
		return nil, cannot(err)
	}
	o.plain = io.LimitReader(o.unsealed, m.Size+1)
	return o, nil
}

// counted counts and hashes the bytes read.
type counted struct {
	r   io.Reader
	n   int64
	sum hash.Hash
}

func (c *counted) Read(p []byte) (int, error) {
	n, err := c.r.Read(p)
	c.n += int64(n)
	c.sum.Write(p[:n])
	return n, err
}

// opened is a snapshot that is being read.
type opened struct {
	manifest Manifest
	object   io.Closer
	stored   *counted
	unsealed io.ReadCloser
	plain    io.Reader
	size     int64 // bytes read
}

func (o *opened) Read(p []byte) (int, error) {
	n, err := o.plain.Read(p)
	o.size += int64(n)
	switch {
	case err == nil:
		return n, nil
	case errors.Is(err, io.EOF):
		if err := o.checkTotals(); err != nil {
			return n, fmt.Errorf("cannot read the snapshot %s: %w", o.manifest.Name, err)
		}
		return n, io.EOF
	}
	return n, fmt.Errorf("cannot read the snapshot %s: %w", o.manifest.Name, o.classify(err))
}

// classify returns the cause of the read error err: [ErrDamaged] if the object is truncated or changed, the store's
// error if the store cannot be read, and otherwise err itself.
func (o *opened) classify(err error) error {
	if _, readErr := io.Copy(io.Discard, o.stored); readErr != nil {
		return readErr
	}
	return cmp.Or(o.storedWhole(), err)
}

func (o *opened) storedWhole() error {
	switch m := o.manifest; {
	case o.stored.n < m.StoredSize:
		return fmt.Errorf("%w: %d bytes are stored, but %d were written", ErrDamaged, o.stored.n, m.StoredSize)
	case o.stored.n > m.StoredSize:
		return fmt.Errorf("%w: more is stored than the %d bytes that were written", ErrDamaged, m.StoredSize)
	case hex.EncodeToString(o.stored.sum.Sum(nil)) != m.StoredSHA256:
		return fmt.Errorf("%w: the SHA-256 of the stored data differs from that of the written data", ErrDamaged)
	}
	return nil
}

// checkTotals checks size and hash after the last byte.
func (o *opened) checkTotals() error {
	if _, err := io.Copy(io.Discard, o.stored); err != nil {
		return err
	}
	if err := o.storedWhole(); err != nil {
		return err
	}
	if o.size != o.manifest.Size {
		return fmt.Errorf("%w: the database has %d bytes, but the manifest has %d", ErrDamaged, o.size, o.manifest.Size)
	}
	return nil
}

// Close closes the object.
func (o *opened) Close() error { return errors.Join(o.unsealed.Close(), o.object.Close()) }
