// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"context"

	"github.com/quorumd/quorumd/agent/hooks"
)

// told is what the side that runs the programs tells.
type told struct {
	result hooks.Result
	err    error
}

func (t told) Start(context.Context, hooks.Run) error { return t.err }

func (t told) State(context.Context, hooks.Run) (hooks.Result, error) { return t.result, t.err }

func (t told) Find(string) error { return t.err }
