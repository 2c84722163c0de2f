// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package local

import (
	"fmt"
	"path/filepath"
	"time"

	"github.com/quorumd/quorumd/agent/policy"
	"github.com/quorumd/quorumd/agent/record"
)

const recoveryName = "recovery.json"

// Recoveries is the plan that is in force on this host, and how the last one ended. It lies in the state directory.
type Recoveries struct {
	Recovery *Recovery    `json:"recovery,omitempty"`
	Last     *RecoveryEnd `json:"last,omitempty"`
}

// Recovery is what a plan asks of this host.
type Recovery struct {
	Plan     string          `json:"plan"`
	Old      record.MemberID `json:"oldClusterID"`
	New      record.MemberID `json:"newClusterID"`
	Survivor string          `json:"survivor"` // its name
	Alone    bool            `json:"alone,omitempty"`
	Member   record.MemberID `json:"memberID,omitzero"` // of the data that the plan was made for
	Term     uint64          `json:"lastTerm,omitempty"`
	Index    uint64          `json:"lastIndex,omitempty"`
	By       string          `json:"by"`
	Since    time.Time       `json:"since"`
}

// RecoveryEnd is how a plan ended on this host.
type RecoveryEnd struct {
	Recovery
	Ended time.Time         `json:"ended"`
	Code  policy.ReasonCode `json:"code"`
}

// Recoveries gives the plan in force, or nil, and how the last one ended, or nil. The values are not to be changed.
func (f *State) Recoveries() (*Recovery, *RecoveryEnd) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.recovery.Recovery, f.recovery.Last
}

// BeginRecovery puts a plan in force. One that is stays, and is given as other; the same one is not begun again once it
// has ended well.
func (f *State) BeginRecovery(plan Recovery) (other *Recovery, err error) {
	err = f.changeRecovery(func(file *Recoveries) {
		switch {
		case file.Recovery != nil && file.Recovery.Plan != plan.Plan:
			other = file.Recovery
		case file.Last != nil && file.Last.Plan == plan.Plan && file.Last.Code == policy.Recovered:
		case file.Recovery == nil:
			file.Recovery = &plan
		}
	})
	return other, err
}

// EndRecovery forgets that plan.
func (f *State) EndRecovery(plan string, code policy.ReasonCode, at time.Time) error {
	return f.changeRecovery(func(file *Recoveries) {
		if file.Recovery != nil && file.Recovery.Plan == plan {
			file.Last = &RecoveryEnd{Recovery: *file.Recovery, Ended: at.UTC(), Code: code}
			file.Recovery = nil
		}
	})
}

func (f *State) changeRecovery(change func(file *Recoveries)) error {
	defer f.turn()()
	f.mu.Lock()
	before := f.recovery
	f.mu.Unlock()
	next := before
	if change(&next); next == before {
		return nil
	}
	if err := writeJSON(f.disk, filepath.Join(f.state, recoveryName), next, true); err != nil {
		return fmt.Errorf("cannot note the recovery: %w", err)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.recovery = next
	return nil
}
