// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"context"

	"github.com/quorumd/quorumd/agent/local"
)

// commandHint is what to do about a command that cannot be run here.
const commandHint = "put the program into commands.d, beside the hooks, on every host, owned by root and writable by " +
	"nobody else"

// unfitFor tells why a command could not be run on this host, or nothing.
func (a *Agent) unfitFor(ctx context.Context, command string) string {
	if a.opt.Hooks == nil {
		return "this agent has no way to run a command"
	}
	if err := local.Within(ctx, func() error { return a.opt.Hooks.Find(command) }); err != nil {
		return err.Error()
	}
	return ""
}
