// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

// Package backup takes snapshots of etcd's database into a store, and gives them back.
//
// A snapshot is two objects of one name: the data (the file as etcd's snapshot stream sends it, compressed, and
// encrypted if it is asked for) and a manifest, a small JSON document, written last and only where there is none. What
// has no manifest is no snapshot. The package promises:
//
//   - Nothing but the mark of a verification is ever overwritten: each name has the revision, the time,
//     the host and 64 random bits in it.
//   - A manifest is written only after the database was opened as etcd opens it, its checksum, revision, number of keys
//     and hash were taken from what lies there, and the stored bytes were read back and are those that were written.
//   - What fails leaves nothing behind, as far as the store lets it be taken away: no data without a manifest, no file.
//   - Nothing read from a store is trusted: it is bounded in bytes and in number, and a snapshot is whole only when it
//     was read to its end without an error.
//
// It may hang with the store. Whoever calls it does so in a process that may be abandoned.
package backup
