// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package systemd

import "context"

// Unit is a local service: a systemd unit, a plain process, or a service that another program runs. Start, Stop and
// Restart only queue requests. The status shows their result.
type Unit interface {
	Status(ctx context.Context) (Status, error)
	Start(ctx context.Context) error
	Stop(ctx context.Context) error
	Restart(ctx context.Context) error
	// SetEnvironment sets the environment for the next start.
	SetEnvironment(ctx context.Context, vars map[string]string) error
}
