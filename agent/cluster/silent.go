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

// Silent makes sure that no etcd runs at the endpoints, the own one apart: each must refuse connections.
// Silence proves nothing, since a cluster may be behind it. It gives a *NotSilent.
func Silent(ctx context.Context, diagnose func(context.Context, string) error, endpoints []string, own string) error {
	for _, endpoint := range endpoints {
		if endpoint == own {
			continue
		}
		err := diagnose(ctx, endpoint)
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
