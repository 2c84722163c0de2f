// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"context"

	"github.com/quorumd/quorumd/agent/hooks"
)

// Leadership moves etcd's leadership.
type Leadership interface {
	MoveLeader(ctx context.Context, leaderURL string, to uint64) error
}

// Machine is the host itself.
type Machine interface {
	// Reboot asks for an orderly reboot and returns once it is under way.
	Reboot(ctx context.Context) error
}

// Hooks are the operator's own programs that run before etcd is stopped and after it is back. Its
// methods start or look, and never wait for a program.
type Hooks interface {
	Start(ctx context.Context, run hooks.Run) error
	State(ctx context.Context, run hooks.Run) (hooks.Result, error)
	// Find tells why the command of that name could not be run here; nil when it can.
	Find(name string) error
}
