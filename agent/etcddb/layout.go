// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

// Package etcddb reads etcd's database file: the buckets, revisions and contents. It also prepares such a file for a
// new cluster. It promises:
//
//   - A file that is not such a database, was truncated, or has a damaged structure causes an error, never a crash.
//   - Its results are the same as etcd's: revision, compaction, number of keys, and the hash of HashKV.
package etcddb

import "encoding/binary"

// Names of etcd's buckets, and of keys in the buckets "meta" and "auth" (go.etcd.io/etcd/server/v3/storage/schema).
const (
	Keys           = "key" // maps a revision to its change, oldest first
	Meta           = "meta"
	Members        = "members"
	MembersRemoved = "members_removed"

	ScheduledCompaction = "scheduledCompactRev"
	finishedCompaction  = "finishedCompactRev"
	// ConsistentIndex and Term are those of the last log entry that the database contains. ConfState is the membership
	// at that entry.
	ConsistentIndex = "consistent_index"
	Term            = "term"
	ConfState       = "confState"
	// StorageVersion is the minor version of etcd that the database was made for, such as 3.6.0; absent before 3.6.
	StorageVersion = "storageVersion"

	// Auth contains AuthEnabled, a byte that is 1 if etcd requires authentication.
	Auth        = "auth"
	AuthEnabled = "authEnabled"
)

// A revision consists of the main revision, a separator and the sub revision. The revision of a deletion is one byte
// longer.
const (
	revisionBytes  = 8 + 1 + 8
	tombstoneBytes = revisionBytes + 1 // ends with 't': the key was deleted
)

// RevisionOf returns the main revision at the beginning of a key; 0 if the key is too short.
func RevisionOf(key []byte) int64 {
	if len(key) < revisionBytes {
		return 0
	}
	return int64(binary.BigEndian.Uint64(key)) //nolint:gosec // etcd writes it from an int64
}

// IndexOf returns the consistent index in a value; 0 if the value is invalid.
func IndexOf(value []byte) uint64 {
	if len(value) != 8 {
		return 0
	}
	return binary.BigEndian.Uint64(value)
}

// RevisionKey returns the key of a main revision, which must not be negative.
func RevisionKey(main int64) []byte {
	key := make([]byte, revisionBytes)
	binary.BigEndian.PutUint64(key, uint64(main)) //nolint:gosec // it is never negative
	key[8] = '_'
	return key
}
