// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"errors"
	"iter"
	"syscall"
)

// KnownEndpoints tells where members may be, and whether one is there.
type KnownEndpoints interface {
	// Known gives the endpoints; the error says that some may be missing.
	Known() ([]string, error)
	Diagnose(ctx context.Context, endpoint string) error
}

// Others gives what a connection meets at one endpoint after the other that is known, the own one apart, and why some
// may be missing.
func Others(ctx context.Context, etcd KnownEndpoints, own string) (others iter.Seq2[string, error], missing error) {
	endpoints, missing := etcd.Known()
	return func(yield func(string, error) bool) {
		for _, endpoint := range endpoints {
			if endpoint != own && !yield(endpoint, etcd.Diagnose(ctx, endpoint)) {
				return
			}
		}
	}, missing
}

// Refuses tells of what a connection has met whether nothing listens there.
func Refuses(err error) bool { return errors.Is(err, syscall.ECONNREFUSED) }
