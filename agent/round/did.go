// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package round

import (
	"time"

	"github.com/quorumd/quorumd/agent/policy"
	"github.com/quorumd/quorumd/agent/record"
)

// ActorState is what this process holds and has done so far. The actor passes it by value to the observer.
type ActorState struct {
	Token      int64         // of the lock; 0 if it is not held
	ValidUntil time.Duration // of the lock, for certain

	Steps  uint64 // that have ended
	Stuck  string // the step that has not ended yet, for display; "" if there is none
	Failed policy.FailedStep

	Promoted, Rebooted, Started Stamp             // when it last sent a promotion, requested a reboot, started the unit
	SteppedDown                 Stamp             // when it last asked its member to transfer the leadership,
	SteppedDownInRow            int               // and how many times in a row
	Copied                      Stamp             // when it last started to copy the survivor's data
	Launched                    Stamp             // which run of programs it started last
	Environment                 map[string]string // last written for the unit; nil if none. It is not changed
}

// ValidFor returns how long the lock is certainly held from now on.
func (d ActorState) ValidFor(now time.Duration) time.Duration { return max(0, d.ValidUntil-now) }

// Stamp is when something was last done; the zero value means never.
type Stamp struct {
	Is bool
	At time.Duration
	Of string // which of several
}

// Age returns how long ago that was, or policy.Never.
func (s Stamp) Age(now time.Duration) time.Duration {
	if !s.Is {
		return policy.Never
	}
	return now - s.At
}

// Completion is the outcome of a step, for reports.
type Completion struct {
	Step   policy.Step
	On     *Round // that decided it
	Err    error
	Unsaid bool         // not worth a line in the history
	Ended  *record.Line // the line that ended an operation, already in etcd
}
