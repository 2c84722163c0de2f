// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package hoststate

import (
	"time"

	"github.com/quorumd/quorumd/agent/policy"
	"github.com/quorumd/quorumd/agent/record"
)

// Ask records next as this host's request, or renews the pending request. It refuses next if next conflicts with the
// pending request.
func (f *State) Ask(next Request) (refused *policy.Refusal, err error) {
	err = f.changeRequest(func(k *Request) (*Request, *End) {
		if k == nil {
			value := next
			k = &value
		}
		var renewed policy.Request
		renewed, refused = k.At(next.AskedIn).Renewed(next.Request)
		if k.becomes(renewed); refused == nil {
			k.Lasts(next.For, next.Since)
		}
		return k, nil
	})
	return refused, err
}

// Completion is an operator's statement that the request is done.
type Completion struct {
	By      string
	At      time.Time
	Rolling *record.Rollout // the rollout in progress, if any
	Waives  bool            // do not wait for failed hooks in after.d
}

// Finish applies an operator's statement that the request is done, unless it is refused. If nothing has been done for
// the request, it is cancelled.
func (f *State) Finish(w Completion) (refused *policy.Refusal, err error) {
	err = f.changeRequest(func(k *Request) (*Request, *End) {
		if k == nil {
			return nil, nil
		}
		var next policy.Request
		var withdrawn bool
		rolls := w.Rolling != nil && k.Rollout == w.Rolling.ID
		if next, withdrawn, refused = k.At("").Finished(w.Waives, rolls); withdrawn {
			return nil, k.End(policy.Cancelled, "by "+w.By, w.At.UTC())
		}
		k.becomes(next)
		return k, nil
	})
	return refused, err
}

// Unhurry records that the shutdown of the machine was cancelled, so the request waits like any other.
func (f *State) Unhurry() error { return f.moves(policy.Request.Unhurried) }
