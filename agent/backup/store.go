// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package backup

import (
	"context"
	"io"
	"time"
)

const (
	dataEnding     = ".db.zst"
	manifestEnding = ".json"
	verifiedEnding = ".verified" // a mark: the object's time is when the snapshot was last verified
	provenEnding   = ".proven"   // the same for when an etcd last served it
)

// MaxObjects bounds what a store may hold of one cluster. A store with more is refused.
const MaxObjects = 20_000

// Store keeps objects, of one cluster. Names have no slash in them. Errors name no secret.
type Store interface {
	Source
	Sink
}

// Source is a store from which is read.
type Source interface {
	// Get opens an object. One that is not there is [ErrNoSnapshot].
	Get(ctx context.Context, name string) (io.ReadCloser, error)
	// List gives all objects in no order, at most [MaxObjects]: more are an error.
	List(ctx context.Context) ([]Object, error)
}

// Sink is a store to which is written.
type Sink interface {
	// Put writes an object of unknown length. After an error nothing of that name is there.
	Put(ctx context.Context, name string, content io.Reader) error
	// PutIfAbsent writes a small object, whole or not at all, unless there is one of that name: then it is an error.
	// Of two who try at once one gets it.
	PutIfAbsent(ctx context.Context, name string, content []byte) error
	// Replace writes a small object, over the one of that name if there is one: one of the two is there at any time.
	Replace(ctx context.Context, name string, content []byte) error
	// Delete takes an object away. One that is not there is no error.
	Delete(ctx context.Context, name string) error
}

// Object is what a store says of an object.
type Object struct {
	Name     string
	Size     int64
	Modified time.Time // by the store's clock
}
