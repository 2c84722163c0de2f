// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package round

import (
	"time"

	"github.com/quorumd/quorumd/agent/hooks"
)

// HostState is what a look has found that runs beside the loop or may fail.
type HostState[T any] struct {
	Value T
	Err   error         // of the last look
	OK    bool          // there is a value, and it is not too old
	Age   time.Duration // of the value
}

// Programs are the runs of the operator's own programs that were looked at, as their time had come.
type Programs struct {
	Before, After, Command HostState[hooks.Result]
}

// Input is what the loop tells a round that begins.
type Input struct {
	Number uint64
	Did    ActorState
	Hurry  bool     // somebody waits for a fresh picture of the cluster
	Light  bool     // a round in between two full ones, which asks etcd for little
	Behind []string // the hosts that the last decision waits for, by their IDs
	First  bool     // by the last decision this host goes first
	Quiet  bool     // by the last decision nothing is going on
}
