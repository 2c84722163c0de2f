// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"errors"
	"iter"
	"syscall"

	"github.com/quorumd/quorumd/agent/policy"
)

// Asked tells where members may be, and whether one is there.
type Asked interface {
	// Known gives the endpoints; the error says that some may be missing.
	Known() ([]string, error)
	Diagnose(ctx context.Context, endpoint string) error
}

// Others gives what a connection meets at one endpoint after the other that is known, the own one apart, and why some
// may be missing.
func Others(ctx context.Context, etcd Asked, own string) (missing string, others iter.Seq[policy.Endpoint]) {
	endpoints, err := etcd.Known()
	if err != nil {
		missing = err.Error()
	}
	return missing, func(yield func(policy.Endpoint) bool) {
		for _, endpoint := range endpoints {
			if endpoint == own {
				continue
			}
			e := policy.Endpoint{URL: endpoint}
			err := etcd.Diagnose(ctx, endpoint)
			if e.Refuses = errors.Is(err, syscall.ECONNREFUSED); err != nil {
				e.Error = err.Error()
			}
			if !yield(e) {
				return
			}
		}
	}
}
