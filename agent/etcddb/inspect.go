// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package etcddb

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"hash/crc32"
	"hash/maphash"
	"os"
	"runtime/debug"
	"time"

	"go.etcd.io/bbolt"
	bolterrors "go.etcd.io/bbolt/errors"
	"google.golang.org/protobuf/encoding/protowire"

	"github.com/quorumd/quorumd/agent/record"
)

const keyField = 1 // number of the field key in mvccpb.KeyValue

// ErrDamaged means that a database was modified, or that a file is not a database.
var ErrDamaged = errors.New("the snapshot is damaged")

// ErrInUse means that a process, such as a running etcd, has locked the database.
var ErrInUse = errors.New("a running etcd has the database open → etcdctl snapshot save FILE")

// lockWait is how long to wait for the lock of a database.
const lockWait = time.Second

// change is one entry of the bucket of keys.
type change struct {
	revision  int64
	tombstone bool
	key       uint64 // a hash of the key's name
	unnamed   bool   // the entry only raises the revision
}

// Inspect opens a database as etcd does, reads all of it, and returns what it contains. The hash equals etcd's
// HashKV for the newest revision. Inspect needs about 50 to 100 bytes of memory for each key that existed since the
// last compaction. It reads every entry twice, and calls progress each time with the entry's size in bytes. An
// invalid database is an error, never a crash.
func Inspect(ctx context.Context, file *os.File, progress func(int64)) (c record.Contents, err error) {
	err = view(file, func(tx *bbolt.Tx, _ int64) (err error) {
		c, err = contents(ctx, tx, progress)
		return err
	})
	return c, err
}

// view checks the pages of a database, and calls read with a transaction that only reads and with the size of the pages
// in use, in bytes. A panic in read is an error.
func view(file *os.File, read func(tx *bbolt.Tx, used int64) error) (err error) {
	// The file is memory-mapped, so a read error or a truncation during the read causes a fault.
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		if caught := recover(); caught != nil {
			err = fmt.Errorf("%w: cannot read the database: %v", ErrDamaged, caught)
		}
	}()
	again, err := os.Open(fmt.Sprintf("/proc/self/fd/%d", file.Fd())) // the file may have been unlinked
	if err != nil {
		return fmt.Errorf("cannot open the database: %w", err) // not evidence of damage
	}
	db, err := bbolt.Open(file.Name(), 0, &bbolt.Options{
		ReadOnly: true, Timeout: lockWait,
		OpenFile: func(string, int, os.FileMode) (*os.File, error) { return again, nil }, // bbolt closes the file
	})
	if errors.Is(err, bolterrors.ErrTimeout) {
		return ErrInUse
	}
	if err != nil {
		return fmt.Errorf("%w: cannot open the database: %w", ErrDamaged, err)
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	info, err := file.Stat()
	if err != nil {
		return fmt.Errorf("cannot open the database: %w", err)
	}
	used, err := InUse(file, info.Size(), db.Info().PageSize)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrDamaged, err)
	}
	return db.View(func(tx *bbolt.Tx) error { return read(tx, used) })
}

func contents(ctx context.Context, tx *bbolt.Tx, progress func(int64)) (record.Contents, error) {
	keys, meta, err := buckets(tx)
	if err != nil {
		return record.Contents{}, err
	}
	c := record.Contents{CompactRevision: -1}
	if at := meta.Get([]byte(finishedCompaction)); len(at) >= revisionBytes {
		c.CompactRevision = RevisionOf(at)
	}
	// When etcd starts, it completes a scheduled compaction.
	if at := meta.Get([]byte(ScheduledCompaction)); len(at) >= revisionBytes {
		c.CompactRevision = max(c.CompactRevision, RevisionOf(at))
	}
	newest := map[uint64]change{} // newest change of each key
	seed := maphash.MakeSeed()
	err = each(ctx, keys, seed, progress, func(at change, _, _ []byte) {
		newest[at.key] = at
		c.Revision = max(c.Revision, at.revision)
	})
	if err != nil {
		return record.Contents{}, err
	}
	c.Revision = max(c.Revision, c.CompactRevision, 1)
	kept := 0
	for _, at := range newest {
		if at.tombstone {
			continue
		}
		kept++
		if !at.unnamed {
			c.Keys++
		}
	}
	sum := crc32.New(crc32.MakeTable(crc32.Castagnoli))
	sum.Write([]byte("key"))
	err = each(ctx, keys, seed, progress, func(at change, k, v []byte) {
		// Entries that the compaction deletes do not count, whether or not they have been deleted yet.
		superseded := newest[at.key] != at || at.tombstone
		if at.revision <= c.CompactRevision && superseded && kept > 0 ||
			at.revision == c.CompactRevision && at.tombstone {
			return
		}
		sum.Write(k)
		sum.Write(v)
	})
	c.Hash = sum.Sum32()
	return c, err
}

func buckets(tx *bbolt.Tx) (keys, meta *bbolt.Bucket, err error) {
	keys, meta = tx.Bucket([]byte(Keys)), tx.Bucket([]byte(Meta))
	if keys == nil || meta == nil {
		return nil, nil, fmt.Errorf("%w: not an etcd database: no bucket \"key\" or \"meta\"", ErrDamaged)
	}
	return keys, meta, nil
}

// each calls a function for every change, in revision order.
func each(ctx context.Context, bucket *bbolt.Bucket, seed maphash.Seed, progress func(int64),
	do func(at change, k, v []byte),
) error {
	cursor := bucket.Cursor()
	count := 0
	for k, v := cursor.First(); k != nil; k, v = cursor.Next() {
		at, err := changeOf(k, v, seed)
		if err != nil {
			return fmt.Errorf("%w: %w", ErrDamaged, err)
		}
		do(at, k, v)
		progress(int64(len(k) + len(v)))
		if count++; count%1024 == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
	}
	return nil
}

func changeOf(k, v []byte, seed maphash.Seed) (change, error) {
	if len(k) != revisionBytes && len(k) != tombstoneBytes || k[8] != '_' || RevisionOf(k) < 0 {
		return change{}, errors.New("it contains an invalid revision")
	}
	var name []byte
	var err error
	// A revision that was raised without a change, by a recovery or by etcdutl's --bump-revision, has no KeyValue. etcd
	// treats it as a change of a key with an empty name, which no client can write or read, and keeps it.
	if len(v) > 0 {
		name, err = nameOfKey(v)
	}
	return change{
		revision:  RevisionOf(k),
		tombstone: len(k) == tombstoneBytes && bytes.HasSuffix(k, []byte("t")),
		key:       maphash.Bytes(seed, name),
		unnamed:   len(name) == 0,
	}, err
}

// nameOfKey returns a key's name from its encoded KeyValue.
func nameOfKey(v []byte) ([]byte, error) {
	for len(v) > 0 {
		number, kind, n := protowire.ConsumeTag(v)
		if n < 0 {
			break
		}
		v = v[n:]
		if number == keyField && kind == protowire.BytesType {
			name, n := protowire.ConsumeBytes(v)
			if n < 0 {
				break
			}
			return name, nil
		}
		n = protowire.ConsumeFieldValue(number, kind, v)
		if n < 0 {
			break
		}
		v = v[n:]
	}
	return nil, errors.New("it contains a key without a name")
}
