// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"errors"
	"iter"
	"syscall"
)

// KnownEndpoints provides the endpoints where members may be, and connects to them.
type KnownEndpoints interface {
	// Known returns the endpoints; the error means that some may be missing.
	Known() ([]string, error)
	// Diagnose returns the error of a connection to an endpoint, or nil if the connection succeeds.
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

// Refuses reports whether a connection failed because no process listens at the endpoint.
func Refuses(err error) bool { return errors.Is(err, syscall.ECONNREFUSED) }
