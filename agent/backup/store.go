// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package backup

import (
	"context"
	"io"
	"time"
)

const (
	dataEnding          = ".db.zst"
	manifestEnding      = ".json"
	verifiedEnding      = ".verified"       // mark; its time is that of the last verification of the snapshot
	restoreTestedEnding = ".restore-tested" // mark; its time is that of the last restore test that the snapshot passed
)

// MaxObjects limits the objects of one cluster in a store. A store with more is refused.
const MaxObjects = 20_000

// Store keeps the objects of one cluster. Names contain no slash. Errors contain no secrets.
type Store interface {
	Source
	Sink
}

// Source is a store to read from.
type Source interface {
	// Get opens an object. If the object does not exist, the error is [ErrNoSnapshot].
	Get(ctx context.Context, name string) (io.ReadCloser, error)
	// List returns all objects in any order. It returns an error if there are more than [MaxObjects].
	List(ctx context.Context) ([]Object, error)
}

// Sink is a store to write to.
type Sink interface {
	// Put writes an object of unknown length. After an error, an object of that name may or may not exist.
	Put(ctx context.Context, name string, content io.Reader) error
	// PutIfAbsent writes a small object, whole or not at all. It fails if the name exists. If two writers use the same
	// name concurrently, only one succeeds.
	PutIfAbsent(ctx context.Context, name string, content []byte) error
	// Replace writes a small object, and replaces an existing one. At every moment the old or the new one exists.
	Replace(ctx context.Context, name string, content []byte) error
	// Delete removes an object. A missing object is not an error.
	Delete(ctx context.Context, name string) error
}

// Object describes an object in a store.
type Object struct {
	Name     string
	Size     int64
	Modified time.Time // according to the store's clock
}
