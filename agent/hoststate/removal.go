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
)

const removalName = "removal.json"

// Removals holds the removal requested of this host, and how the last one ended. It is stored in the state directory,
// so that it survives a restart of the agent.
type Removals struct {
	Removal *Removal            `json:"removal,omitempty"`
	Last    *control.RemovalEnd `json:"last,omitempty"`
}

// Removal is an operator's request to remove a member from etcd for good.
type Removal struct {
	control.RequestedRemoval
	Begun bool `json:"begun,omitempty"` // its operation has begun or may have begun, so no second operation may begin
	// Retires is the ID of the host whose retirement requires this removal; empty if there is none.
	Retires string `json:"retires,omitempty"`
}

// Removals returns the pending removal, or nil, and how the last one ended, or nil. The values must not be changed.
func (f *State) Removals() (*Removal, *control.RemovalEnd) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.removal.Removal, f.removal.Last
}

// ChangeRemoval applies change to a copy of the content and writes the file if anything changed. change may replace the
// pointers but must not modify the values behind them.
func (f *State) ChangeRemoval(change func(file *Removals)) error {
	defer f.writes()()
	f.mu.Lock()
	before := f.removal
	f.mu.Unlock()
	next := before
	if change(&next); next == before {
		return nil
	}
	if err := writeJSON(f.disk, filepath.Join(f.state, removalName), next, true); err != nil {
		return fmt.Errorf("cannot save the removal: %w", err)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.removal = next
	return nil
}

// At converts the removal to the policy's input at that time.
func (k *Removal) At(now time.Time) policy.Removal {
	return policy.Removal{
		MemberID: uint64(k.MemberID), Name: k.Name, By: k.By, Reason: k.Reason, Live: k.Live,
		Expired: !now.Before(k.Until), Begun: k.Begun, Retires: k.Retires, AskedFor: max(now.Sub(k.Since), 0),
	}
}

// AskRemoval records a removal as the pending one, or renews the pending removal of the same member, and returns the
// result. It returns a refusal while a removal of a different member is pending, unless that removal has expired and
// its operation is not in flight. runs reports whether the operation of the pending removal is in flight.
func (f *State) AskRemoval(asked control.RequestedRemoval, retires string, runs bool) (k Removal,
	refused *policy.Refusal, err error,
) {
	k.RequestedRemoval, k.Retires = asked, retires
	err = f.ChangeRemoval(func(file *Removals) {
		if before := file.Removal; before != nil {
			if refused = before.At(k.Since).Against(uint64(k.MemberID), runs); refused != nil {
				return
			}
			if before.MemberID == k.MemberID {
				k.Since, k.Begun = before.Since, before.Begun
			}
		}
		file.Removal = &k
	})
	return k, refused, err
}

// MarkRemoval records whether the operation of the removal has begun. It returns an error if the removal is no longer
// pending.
func (f *State) MarkRemoval(k *Removal, begun bool) error {
	found := false
	err := f.ChangeRemoval(func(file *Removals) {
		if found = k != nil && file.Removal != nil && file.Removal.MemberID == k.MemberID; found {
			next := *file.Removal
			next.Begun = begun
			file.Removal = &next
		}
	})
	if err == nil && !found {
		err = errors.New("cannot start the removal: the request was cancelled")
	}
	return err
}

// RemovalStandingEnds ends the given removal if it is still pending and has been neither renewed nor begun in the
// meantime.
func (f *State) RemovalStandingEnds(of *Removal, code policy.ReasonCode, text string, at time.Time) error {
	return f.ChangeRemoval(func(file *Removals) {
		if of != nil && file.Removal != nil && *file.Removal == *of {
			file.end(code, text, at)
		}
	})
}

// EndRemoval ends the removal, if it is still pending.
func (f *State) EndRemoval(k *Removal, code policy.ReasonCode, text string, at time.Time) error {
	return f.ChangeRemoval(func(file *Removals) {
		if k != nil && file.Removal != nil && file.Removal.MemberID == k.MemberID {
			file.end(code, text, at)
		}
	})
}

func (r *Removals) end(code policy.ReasonCode, text string, at time.Time) {
	r.Last = &control.RemovalEnd{
		RequestedRemoval: r.Removal.RequestedRemoval, Ended: at.UTC(), Code: code, Text: text,
	}
	r.Removal = nil
}
