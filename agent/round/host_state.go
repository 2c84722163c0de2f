// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package round

import (
	"time"

	"github.com/quorumd/quorumd/agent/hooks"
)

// HostState is the result of a check that runs in the background or may fail.
type HostState[T any] struct {
	Value T
	Err   error         // error of the last check
	OK    bool          // Value is set and not too old
	Age   time.Duration // age of Value
}

// Programs are the results of the operator's hooks and command, for the runs of programs that this round had to check.
type Programs struct {
	Before, After, Command HostState[hooks.Result]
}

// Input is what the loop passes to a new round.
type Input struct {
	Number uint64
	Did    ActorState
	Hurry  bool     // a caller waits for a fresh cluster state, or a step has just succeeded
	Light  bool     // the round is between two full ones, and sends few requests to etcd
	Behind []string // IDs of the hosts that the last decision waits for
	First  bool     // according to the last decision, this host acts first
	Quiet  bool     // according to the last decision, nothing is in progress
}
