// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package hoststate

import (
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"github.com/quorumd/quorumd/agent/policy"
	"github.com/quorumd/quorumd/agent/record"
)

const removalName = "removal.json"

// Removals is the removal that this host was asked for, and how the last one ended. It lies in the state directory:
// the agent may be restarted meanwhile.
type Removals struct {
	Removal *Removal    `json:"removal,omitempty"`
	Last    *RemovalEnd `json:"last,omitempty"`
}

// Removal is a person's word that a member is to be taken out of etcd for good.
type Removal struct {
	MemberID record.MemberID `json:"memberID"`
	Name     string          `json:"name"` // of the member, for people
	Reason   string          `json:"reason"`
	By       string          `json:"by"`
	Live     bool            `json:"live,omitempty"`
	Since    time.Time       `json:"since"`
	Until    time.Time       `json:"until"`           // after which it begins no more
	Begun    bool            `json:"begun,omitempty"` // its operation was, or may have been: it begins no second time
}

// RemovalEnd is how a removal ended.
type RemovalEnd struct {
	Removal
	Ended time.Time         `json:"ended"`
	Code  policy.ReasonCode `json:"code"`
	Text  string            `json:"text"`
}

// Removals gives what this host was asked to remove, or nil, and how the last such thing ended, or nil. The values are
// not to be changed.
func (f *State) Removals() (*Removal, *RemovalEnd) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.removal.Removal, f.removal.Last
}

// ChangeRemoval writes what change makes of it. change gets a copy, of which it is not to change what the pointers lead
// to.
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
		return fmt.Errorf("cannot note what is to be removed: %w", err)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.removal = next
	return nil
}

// At gives it as it is decided by, at that time.
func (k *Removal) At(now time.Time) policy.Removal {
	return policy.Removal{
		MemberID: uint64(k.MemberID), Name: k.Name, By: k.By, Reason: k.Reason, Live: k.Live,
		Over: !now.Before(k.Until), Begun: k.Begun,
	}
}

// AskRemoval makes k what this host is to remove, or renews what stands for the same member, and gives it as it stands,
// unless another one stands against it; runs: its operation is in flight.
func (f *State) AskRemoval(k Removal, runs bool) (stands Removal, refused *policy.Refusal, err error) {
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

// MarkRemoval notes whether the operation of what was asked has begun, if it is still that.
func (f *State) MarkRemoval(k *Removal, begun bool) error {
	stands := false
	err := f.ChangeRemoval(func(file *Removals) {
		if stands = k != nil && file.Removal != nil && file.Removal.MemberID == k.MemberID; stands {
			next := *file.Removal
			next.Begun = begun
			file.Removal = &next
		}
	})
	if err == nil && !stands {
		err = errors.New("cannot begin the removal: what was asked was withdrawn in this moment")
	}
	return err
}

// RemovalStandingEnds forgets that removal, if exactly that is asked still: it was neither asked anew nor begun since.
func (f *State) RemovalStandingEnds(of *Removal, code policy.ReasonCode, text string, at time.Time) error {
	return f.ChangeRemoval(func(file *Removals) {
		if of != nil && file.Removal != nil && *file.Removal == *of {
			file.end(code, text, at)
		}
	})
}

// EndRemoval forgets what was asked, if it is still that.
func (f *State) EndRemoval(k *Removal, code policy.ReasonCode, text string, at time.Time) error {
	return f.ChangeRemoval(func(file *Removals) {
		if k != nil && file.Removal != nil && file.Removal.MemberID == k.MemberID {
			file.end(code, text, at)
		}
	})
}

func (r *Removals) end(code policy.ReasonCode, text string, at time.Time) {
	r.Last = &RemovalEnd{Removal: *r.Removal, Ended: at.UTC(), Code: code, Text: text}
	r.Removal = nil
}
