// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

// Package etcddb knows the file in which etcd keeps its keys: the names of its parts, what a revision looks like in
// it, what it holds, and what a cluster begins with that is made of one. It promises:
//
//   - A file that is no such database, or was cut off or changed, is an error, never a crash.
//   - What it says of a database is what etcd says of it: revision, compaction, number of keys, and the hash of HashKV.
package etcddb

import "encoding/binary"

// Names of etcd's buckets, and of what lies in the one named meta (go.etcd.io/etcd/server/v3/storage/schema).
const (
	Keys           = "key" // maps a revision to what was changed in it, oldest first
	Meta           = "meta"
	Members        = "members"
	MembersRemoved = "members_removed"

	ScheduledCompaction = "scheduledCompactRev"
	finishedCompaction  = "finishedCompactRev"
	// ConsistentIndex, Term and ConfState say up to where the database has followed its member's log.
	ConsistentIndex = "consistent_index"
	Term            = "term"
	ConfState       = "confState"
	// StorageVersion is the minor version of etcd that the database was made for, such as 3.6.0; none before 3.6.
	StorageVersion = "storageVersion"

	// Auth holds AuthEnabled, a byte that is 1 where etcd asks for a password.
	Auth        = "auth"
	AuthEnabled = "authEnabled"
)

// A revision in the database: main and sub revision with a sign between them; the key of one that deletes is longer.
const (
	revisionBytes  = 8 + 1 + 8
	tombstoneBytes = revisionBytes + 1 // the last is 't': the key was deleted
)

// RevisionOf returns the main revision that a key begins with; 0 for what is too short for one.
func RevisionOf(key []byte) int64 {
	if len(key) < revisionBytes {
		return 0
	}
	return int64(binary.BigEndian.Uint64(key)) //nolint:gosec // etcd writes it from an int64
}

// IndexOf returns the consistent index that a value holds; 0 if it is none.
func IndexOf(value []byte) uint64 {
	if len(value) != 8 {
		return 0
	}
	return binary.BigEndian.Uint64(value)
}

// RevisionKey returns the key of a main revision, which is not negative.
func RevisionKey(main int64) []byte {
	key := make([]byte, revisionBytes)
	binary.BigEndian.PutUint64(key, uint64(main)) //nolint:gosec // it is never negative
	key[8] = '_'
	return key
}
