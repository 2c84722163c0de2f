// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package hoststate

import (
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"github.com/quorumd/quorumd/agent/control"
	"github.com/quorumd/quorumd/agent/policy"
	"github.com/quorumd/quorumd/agent/record"
	"github.com/quorumd/quorumd/agent/recovery"
)

const recoveryName = "recovery.json"

// Recoveries holds the recovery plan in force on this host, and how the last plan ended. It is stored in the state
// directory.
type Recoveries struct {
	Recovery *Recovery            `json:"recovery,omitempty"`
	Last     *control.RecoveryEnd `json:"last,omitempty"`
}

// Recovery is this host's part of a recovery plan.
type Recovery struct {
	control.Recovery
	Member record.MemberID `json:"memberID,omitzero"` // member ID in the data on which the plan is based
	Term   uint64          `json:"lastTerm,omitempty"`
	Index  uint64          `json:"lastIndex,omitempty"`
	// Source is the snapshot that this host is restored from; nil if it keeps its own data.
	Source *recovery.Snapshot `json:"source,omitempty"`
	// Parted reports that this host has begun to move its data aside, so the plan can no longer be abandoned.
	Parted bool `json:"parted,omitempty"`
}

// Recoveries returns the plan in force, or nil, and how the last one ended, or nil. The values must not be changed.
func (f *State) Recoveries() (*Recovery, *control.RecoveryEnd) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.recovery.Recovery, f.recovery.Last
}

// inForce converts the plan for comparison with another plan; it returns nil if there is none.
func (k *Recovery) inForce() *policy.Recovery {
	if k == nil {
		return nil
	}
	return &policy.Recovery{Plan: k.Plan, By: k.By}
}

// BeginRecovery puts a plan in force unless another plan is in force. It does not repeat a plan that has succeeded.
func (f *State) BeginRecovery(plan Recovery) (refused *policy.Refusal, err error) {
	err = f.changeRecovery(func(file *Recoveries) {
		refused = file.Recovery.inForce().AgainstPlan(plan.Plan)
		switch {
		case refused != nil:
		case file.Last != nil && file.Last.Plan == plan.Plan && file.Last.Code == policy.Recovered:
		case file.Recovery == nil:
			file.Recovery = &plan
		}
	})
	return refused, err
}

// BeginMoveAside records in advance that this host moves its data aside. It fails if the plan was abandoned or is not
// the one in force.
func (f *State) BeginMoveAside(plan string) error {
	var refused error
	err := f.changeRecovery(func(file *Recoveries) {
		switch k := file.Recovery; {
		case k == nil || k.Plan != plan || k.GivenUp != "":
			refused = fmt.Errorf("cannot move the data aside: plan %s is no longer in force", plan)
		case !k.Parted:
			parted := *k
			parted.Parted = true
			file.Recovery = &parted
		}
	})
	return errors.Join(refused, err)
}

// GiveUp marks the plan in force as abandoned, unless this host has begun to move its data aside. It returns the
// resulting plan.
func (f *State) GiveUp(by string) (plan *Recovery, refused *policy.Refusal, err error) {
	err = f.changeRecovery(func(file *Recoveries) {
		k := file.Recovery
		refused = k.inForce().AgainstGivingUp(k != nil && k.Parted)
		if refused == nil && k.GivenUp == "" {
			given := *k
			given.GivenUp = by
			file.Recovery = &given
		}
		plan = file.Recovery
	})
	return plan, refused, err
}

// EndRecovery removes the plan with this ID, if it is in force, and records how it ended.
func (f *State) EndRecovery(plan string, code policy.ReasonCode, at time.Time) error {
	return f.changeRecovery(func(file *Recoveries) {
		if file.Recovery != nil && file.Recovery.Plan == plan {
			file.Last = &control.RecoveryEnd{Recovery: file.Recovery.Recovery, Ended: at.UTC(), Code: code}
			file.Recovery = nil
		}
	})
}

func (f *State) changeRecovery(change func(file *Recoveries)) error {
	defer f.writes()()
	f.mu.Lock()
	before := f.recovery
	f.mu.Unlock()
	next := before
	if change(&next); next == before {
		return nil
	}
	if err := writeJSON(f.disk, filepath.Join(f.state, recoveryName), next, true); err != nil {
		return fmt.Errorf("cannot save the recovery: %w", err)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.recovery = next
	return nil
}
