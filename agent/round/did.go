// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package round

import (
	"time"

	"github.com/quorumd/quorumd/agent/policy"
	"github.com/quorumd/quorumd/agent/record"
)

// ActorState is what this process holds and has done so far: who acts hands it by value to those who observe.
type ActorState struct {
	Token      int64         // of the lock; 0 when it is not held
	ValidUntil time.Duration // the lock, for certain

	Steps  uint64 // that came back
	Stuck  string // what of a step that has not come back yet, for people; empty when there is none
	Failed policy.FailedStep

	Promoted, Rebooted, Started Stamp             // when it last sent a promotion, asked for a reboot, started the unit
	GaveWay                     Stamp             // when it last asked its member to hand the leadership over,
	GaveWayInRow                int               // and so many times in a row
	Copied                      Stamp             // when it last began to copy the survivor's data
	Launched                    Stamp             // what run of programs it last had started
	Environment                 map[string]string // that it last wrote for the unit; nil: none. Nobody changes it
}

// ValidFor gives for how long the lock is certainly held from now on.
func (d ActorState) ValidFor(now time.Duration) time.Duration { return max(0, d.ValidUntil-now) }

// Stamp is when something was last done; the zero value, never.
type Stamp struct {
	Is bool
	At time.Duration
	Of string // what of several
}

// Age gives how long ago that was; policy.Never when it never was.
func (s Stamp) Age(now time.Duration) time.Duration {
	if !s.Is {
		return policy.Never
	}
	return now - s.At
}

// Completion is how a step went, for those who tell of it.
type Completion struct {
	Step   policy.Step
	On     *Round // in which it was decided
	Err    error
	Unsaid bool         // it is no news for the history
	Ended  *record.Line // with which it has ended an operation: etcd has it already
}
