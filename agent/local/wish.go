// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package local

import (
	"time"

	"github.com/quorumd/quorumd/agent/policy"
	"github.com/quorumd/quorumd/agent/record"
)

// Wish is what a person asks of this host.
type Wish struct {
	Work                           policy.Work
	Program, Reason, By            string
	KeepRunning, External, Hurried bool
	For                            time.Duration
	At                             time.Time
	BootID                         string // the boot in which it is asked
}

// Same tells whether a request is for what is wished.
func (w Wish) Same(k *Request) bool {
	return k.Work == w.Work && k.Program == w.Program && k.KeepRunning == w.KeepRunning && k.External == w.External
}

// Ask makes a wish the request of this host, or renews the one that stands when that is for the same. One that is for
// something else, is over, or has started its command already stays, and is given: it stands against the wish.
func (f *State) Ask(w Wish) (against *Request, err error) {
	err = f.ChangeRequest(func(k *Request) (*Request, *End) {
		var next *Request
		next, against = w.onto(k)
		return next, nil
	})
	return against, err
}

// onto gives the request as it is after the wish, and that which stands against it.
func (w Wish) onto(k *Request) (next, against *Request) {
	switch {
	case k == nil:
		k = &Request{
			Work: w.Work, Program: w.Program, By: w.By, Since: w.At.UTC(), AskedIn: w.BootID,
			KeepRunning: w.KeepRunning, External: w.External,
		}
	case k.Over || !w.Same(k):
		k.Hurried = k.Hurried || (w.Hurried && k.Standing(w.BootID).OutlastsReboot()) // the machine goes down now
		return k, k
	case k.Ran != "": // it runs once
		return k, k
	}
	k.Hurried = k.Hurried || w.Hurried
	k.Reason = w.Reason
	k.Lasts(w.For, w.At)
	return k, nil
}

// Word is that of a person who says that what is asked is over.
type Word struct {
	By      string
	At      time.Time
	Rolling *record.Rollout // that runs, if one does
	Waives  bool            // the programs have failed that run after it, and nobody waits for them
}

// Finish takes a person's word that what is asked is over: what has not begun is withdrawn, a host that is down is
// brought back. What the rollout that runs would ask for again at once stays, and again is true.
func (f *State) Finish(w Word) (again bool, err error) {
	err = f.ChangeRequest(func(k *Request) (*Request, *End) {
		switch {
		case k == nil:
			return nil, nil
		case !k.Standing(k.BootID).Untouched():
			k.Over, k.Waived = true, k.Waived || w.Waives
			return k, nil
		case w.Rolling != nil && k.Rollout == w.Rolling.ID:
			again = true
			return k, nil
		}
		return nil, k.Ended(policy.Withdrawn, "by "+w.By, w.At.UTC())
	})
	return again, err
}

// Unhurry notes that the machine does not go down after all: what is asked waits for its turn as any other.
func (f *State) Unhurry() error { return f.MarkRequest(func(k *Request) { k.Hurried = false }) }
