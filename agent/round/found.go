// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package round

import (
	"time"

	"github.com/quorumd/quorumd/agent/hooks"
)

// Found is what a look has found that runs beside the loop or may fail.
type Found[T any] struct {
	Value T
	Err   error         // of the last look
	OK    bool          // there is a value, and it is not too old
	Age   time.Duration // of the value
}

// Programs are the runs of the operator's own programs that were looked at, as their time had come.
type Programs struct {
	Before, After, Command Found[hooks.Result]
}

// In is what the loop tells a round that begins.
type In struct {
	Number uint64
	Did    Did
	Hurry  bool     // somebody waits for a fresh picture of the cluster
	Light  bool     // a round in between two full ones, which asks etcd for little
	Behind []string // the hosts that the last decision waits for, by their IDs
	First  bool     // by the last decision this host goes first
	Quiet  bool     // by the last decision nothing is going on
}
