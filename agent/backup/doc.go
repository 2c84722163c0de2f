// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

// Package backup saves snapshots of etcd's database to a store, and restores them.
//
// A snapshot is two objects with one name: the data (the file from etcd's snapshot stream, compressed, and encrypted if
// configured) and a manifest. The manifest is a small JSON document, written last and only if the name is
// free. Data without a manifest is not a snapshot. The package promises:
//
//   - Only the marks of verifications and restore tests are ever overwritten: the name of each snapshot contains the
//     revision, the time, the host and 64 random bits.
//   - A manifest is written only after the database was opened as etcd opens it, after its checksum, revision, number
//     of keys and hash were read from it, and after the stored bytes were read back and compared.
//   - A failed save leaves neither data without a manifest nor a temporary file, as far as the store allows their
//     removal.
//   - Nothing read from a store is trusted: size and number are limited, and a snapshot is complete only after it was
//     read to the end without an error.
//
// A call may hang if the store hangs, so the caller runs it in a process that it can abandon.
package backup
