// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"errors"
	"syscall"
)

// NotSilent is why it is not certain that no etcd runs at an endpoint.
type NotSilent struct{ Why, Remedy string }

// Error says both.
func (e *NotSilent) Error() string { return e.Why + "; " + e.Remedy }

// Asked tells where members may be, and whether one is there.
type Asked interface {
	// Known gives the endpoints; the error says that some may be missing.
	Known() ([]string, error)
	Diagnose(ctx context.Context, endpoint string) error
}

// Silent makes sure that no etcd runs at any endpoint that is known, the own one apart: each must refuse connections.
// Silence proves nothing, since a cluster may be behind it, and neither does a list that may lack some. It gives a
// *NotSilent.
func Silent(ctx context.Context, etcd Asked, own string) error {
	endpoints, err := etcd.Known()
	if err != nil {
		return &NotSilent{
			"it is not known where a cluster may be: " + err.Error(),
			"correct cluster.discovery, or wait for its answer; without it cluster.endpoints must name all hosts",
		}
	}
	for _, endpoint := range endpoints {
		if endpoint == own {
			continue
		}
		err := etcd.Diagnose(ctx, endpoint)
		switch {
		case errors.Is(err, syscall.ECONNREFUSED):
		case err == nil:
			return &NotSilent{
				"something answers at " + endpoint,
				"see whether a cluster runs there without a quorum; correct cluster.endpoints if it is not etcd",
			}
		default:
			return &NotSilent{
				"it is not known whether a cluster runs at " + endpoint + ": " + err.Error(),
				"bring that host up, or leave it out of cluster.endpoints until it is",
			}
		}
	}
	return nil
}
