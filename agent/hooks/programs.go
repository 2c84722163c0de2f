// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package hooks

import "context"

// Programs are the operator's programs: those that run before etcd is stopped and after it is back, and the commands.
// Its methods start or check a program, and never wait for it. *Runner runs real ones.
type Programs interface {
	Start(ctx context.Context, run Run) error
	State(ctx context.Context, run Run) (Result, error)
	// Find returns why the command of that name could not be run here; nil if it can. It may hang with the disk.
	Find(name string) error
}
