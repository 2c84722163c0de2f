// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"context"

	"github.com/quorumd/quorumd/agent/datadir"
	"github.com/quorumd/quorumd/agent/policy"
)

// DataDir is the local data directory. Its methods hang if the disk hangs.
type DataDir interface {
	Inspect(ctx context.Context) (datadir.Contents, error)
	MoveAside(ctx context.Context) ([]string, error)
}

// Machine is the host itself.
type Machine interface {
	// Reboot requests an orderly reboot and returns as soon as it is in progress.
	Reboot(ctx context.Context) error
	// CheckReboot returns why a reboot would be refused now, or nil.
	CheckReboot(ctx context.Context) error
}

// BootstrapExchange exchanges answers with the other hosts in bootstrap.hosts, which create the cluster together. Its
// methods never block.
type BootstrapExchange interface {
	Answers() []policy.BootstrapAnswer
	Publish(answer policy.BootstrapAnswer)
}
