// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package round

import (
	"time"

	"github.com/quorumd/quorumd/agent/policy"
	"github.com/quorumd/quorumd/agent/record"
)

// ActorState is what this process has done so far, and the state of its lock. The actor passes it by value to the
// observer.
type ActorState struct {
	Token      int64         // fencing token of the lock; 0 if this process does not hold it
	ValidUntil time.Duration // the lock is certainly held until then

	Steps  uint64 // number of steps that have ended
	Stuck  string // the step that has not ended yet, for display; "" if there is none
	Failed policy.FailedStep

	Promoted, Rebooted, Started Stamp // last promotion sent, last reboot requested, last start of the unit
	UpdateSent                  Stamp // last update of the member's peer URL that was sent and not answered
	SteppedDown                 Stamp // last time this process asked its member to transfer leadership
	SteppedDownInRow            int   // consecutive requests to transfer leadership
	Copied                      Stamp // last time this process started to copy the survivor's data
	Launched                    Stamp // the last run of programs that this process started
	// the environment last written for the unit, and the one whose write was last begun and may have failed; nil if
	// none; must not be changed
	Environment, EnvironmentBegun map[string]string
	Permit, Compacted             Stamp // last claim of a permit to free space, last compaction
	Kept                          int64 // the oldest revision that the last compaction kept
	// the member whose online defragmentation, started by this process, still runs; 0 if none does
	Defragmenting uint64
	// for each member, the last online defragmentation that this process requested and that has ended
	Defragmented []Defragmented
}

// Defragmented is an online defragmentation that has ended, with its error if it failed.
type Defragmented struct {
	MemberID uint64
	At       time.Duration
	Err      error
}

// ValidFor returns how much longer the lock is certainly held.
func (d ActorState) ValidFor(now time.Duration) time.Duration { return max(0, d.ValidUntil-now) }

// Stamp is when something was last done; the zero value means never.
type Stamp struct {
	Is bool
	At time.Duration
	Of string // ID of the run; set only for Launched
}

// Age returns the time since the stamp, or policy.Never.
func (s Stamp) Age(now time.Duration) time.Duration {
	if !s.Is {
		return policy.Never
	}
	return now - s.At
}

// Completion is the outcome of a step, for reports.
type Completion struct {
	Step   policy.Step
	On     *Round // the round that decided the step
	Err    error
	Unsaid bool         // do not add a line to the history
	Ended  *record.Line // the line that ended an operation, already in etcd
}
