// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package hoststate

import (
	"time"

	"github.com/quorumd/quorumd/agent/policy"
	"github.com/quorumd/quorumd/agent/record"
)

// Wish is what a person asks of this host.
type Wish struct {
	policy.Standing

	For    time.Duration
	At     time.Time
	BootID string // the boot in which it is asked
}

// Ask makes a wish the request of this host, or renews the one that stands, unless that stands against it.
func (f *State) Ask(w Wish) (refused *policy.Refusal, err error) {
	err = f.changeRequest(func(k *Request) (*Request, *End) {
		if k == nil {
			k = &Request{
				Work: w.Work, Program: w.Program, By: w.By, Since: w.At.UTC(), AskedIn: w.BootID,
				KeepRunning: w.KeepRunning, External: w.External,
			}
		}
		var next policy.Standing
		next, refused = k.Standing(w.BootID).Renewed(w.Standing)
		if k.becomes(next); refused == nil {
			k.Lasts(w.For, w.At)
		}
		return k, nil
	})
	return refused, err
}

// Word is that of a person who says that what is asked is over.
type Word struct {
	By      string
	At      time.Time
	Rolling *record.Rollout // that runs, if one does
	Waives  bool            // the programs have failed that run after it, and nobody waits for them
}

// Finish takes a person's word that what is asked is over, unless it is refused.
func (f *State) Finish(w Word) (refused *policy.Refusal, err error) {
	err = f.changeRequest(func(k *Request) (*Request, *End) {
		if k == nil {
			return nil, nil
		}
		var next policy.Standing
		var withdrawn bool
		rolls := w.Rolling != nil && k.Rollout == w.Rolling.ID
		if next, withdrawn, refused = k.Standing("").Finished(w.Waives, rolls); withdrawn {
			return nil, k.End(policy.Withdrawn, "by "+w.By, w.At.UTC())
		}
		k.becomes(next)
		return k, nil
	})
	return refused, err
}

// Unhurry notes that the machine does not go down after all: what is asked waits for its turn as any other.
func (f *State) Unhurry() error { return f.moves(policy.Standing.Unhurried) }
