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
	Err   error         // of the last check
	OK    bool          // there is a value, and it is not too old
	Age   time.Duration // of the value
}

// Programs are the runs of the operator's programs that were due for a check.
type Programs struct {
	Before, After, Command HostState[hooks.Result]
}

// Input is what the loop passes to a new round.
type Input struct {
	Number uint64
	Did    ActorState
	Hurry  bool     // a caller waits for a fresh cluster state
	Light  bool     // a light round between two full ones, with few requests to etcd
	Behind []string // IDs of the hosts that the last decision waits for
	First  bool     // by the last decision this host acts first
	Quiet  bool     // by the last decision nothing is in progress
}
