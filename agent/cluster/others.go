// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"errors"
	"iter"
	"syscall"
)

// KnownEndpoints returns where members may be.
type KnownEndpoints interface {
	// Known returns the endpoints; the error means that some may be missing.
	Known() ([]string, error)
	Diagnose(ctx context.Context, endpoint string) error
}

// Others returns the result of a connection to each known endpoint except this host's own, and why some endpoints may
// be missing.
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

// Refuses reports whether the result of a connection means that nothing listens there.
func Refuses(err error) bool { return errors.Is(err, syscall.ECONNREFUSED) }
