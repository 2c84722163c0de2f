// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package hoststate

import (
	"time"

	"github.com/quorumd/quorumd/agent/control"
	"github.com/quorumd/quorumd/agent/policy"
)

// Transfers holds the leadership transfer requested of this host, and how the last one ended. It is in memory only, so
// it is lost when the agent restarts. That is harmless, because the request expires soon anyway.
type Transfers struct {
	Transfer *Transfer
	Last     *control.TransferEnd
}

// Transfer is an operator's request to transfer leadership.
type Transfer struct {
	control.RequestedTransfer
	Deadline time.Duration // when the request expires, since boot
}

// At converts the request to the policy's input at that time since boot.
func (k *Transfer) At(now time.Duration) policy.TransferRequest {
	return policy.TransferRequest{
		MemberID: uint64(k.MemberID), By: k.By, Reason: k.Reason, Expired: now >= k.Deadline,
	}
}

// Transfers returns the pending leadership transfer, or nil, and how the last one ended, or nil. The values must not be
// changed.
func (f *State) Transfers() (*Transfer, *control.TransferEnd) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.transfers.Transfer, f.transfers.Last
}

// AskTransfer makes k the pending leadership transfer. A request for the same voter renews the pending one. A request
// for a different voter is refused if the pending one has not expired at the time now.
func (f *State) AskTransfer(k Transfer, now time.Duration) *policy.Refusal {
	f.mu.Lock()
	defer f.mu.Unlock()
	if before := f.transfers.Transfer; before != nil && before.MemberID != k.MemberID && now < before.Deadline {
		return &policy.Refusal{
			Kind: policy.Conflicts,
			Text: "a transfer to " + before.Name + " was already requested here, by " + before.By,
			Hint: "wait for it: it ends within a minute",
		}
	}
	f.transfers.Transfer = &k
	return nil
}

// EndTransfer ends the given leadership transfer if it is still pending, and reports whether it was.
func (f *State) EndTransfer(of *Transfer, code policy.ReasonCode, text string, at time.Time) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if of == nil || f.transfers.Transfer != of {
		return false
	}
	f.transfers = Transfers{
		Last: &control.TransferEnd{RequestedTransfer: of.RequestedTransfer, Ended: at.UTC(), Code: code, Text: text},
	}
	return true
}
