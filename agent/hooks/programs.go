// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package hooks

import "context"

// Programs are the operator's hooks and commands. The methods start or check a program, and never wait for it.
// *Launcher is the implementation with real programs.
type Programs interface {
	Start(ctx context.Context, run Run) error
	State(ctx context.Context, run Run) (Result, error)
	// Find returns why the command with that name cannot run on this host, or nil. It may hang if the disk hangs.
	Find(name string) error
}
