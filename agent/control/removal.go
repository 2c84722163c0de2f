// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package control

import (
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// The bounds of how long a removal may stay queued, and the default.
const (
	MinRemoval     = time.Second
	MaxRemoval     = time.Hour
	DefaultRemoval = 5 * time.Minute
)

// RemovalRequest requests that a member be removed from etcd for good.
type RemovalRequest struct {
	Member string        // its name, or its ID as printed by etcdctl
	Reason string        // required, one line
	Live   bool          // even if it votes and answers
	For    time.Duration // MinRemoval to MaxRemoval; a removal that has not begun by then expires

	WithoutSnapshot bool // even if it is healthy and the newest snapshot is not recent
	DryRun          bool // only check the request, and return what it would be
}

// The State of a Removal.
const (
	RemovalWaiting = "waiting"  // in the queue
	RemovalRunning = "removing" // its operation is in flight
	RemovalDone    = "removed"  // already done before the request
)

// Removal is a member's removal as requested of this host.
type Removal struct {
	MemberID string    `json:"memberID"` // hexadecimal, as etcdctl prints it
	Name     string    `json:"name"`
	Reason   string    `json:"reason"`
	By       string    `json:"by"`
	Live     bool      `json:"live"` // even if it votes and answers
	Since    time.Time `json:"since"`
	Until    time.Time `json:"until"` // when the request expires
	State    string    `json:"state"`
	DryRun   bool      `json:"dryRun,omitempty"` // nothing was requested
}

// CodeRemoved is the code of a RemovalEnd that is no fault.
const CodeRemoved = "REMOVED"

// RemovalEnd is how the last removal requested of this host ended.
type RemovalEnd struct {
	MemberID string    `json:"memberID"`
	Name     string    `json:"name"`
	Reason   string    `json:"reason"`
	By       string    `json:"by"`
	Since    time.Time `json:"since"`
	Ended    time.Time `json:"ended"`
	// REMOVED, CANCELLED if it expired, or the code of the reason for another end
	Code string `json:"code"`
	Text string `json:"text"`
}

// removalBody is a RemovalRequest on the wire.
type removalBody struct {
	Member string `json:"member"`
	Reason string `json:"reason"`
	Live   bool   `json:"live,omitempty"`
	For    string `json:"for,omitempty"`

	WithoutSnapshot bool `json:"withoutSnapshot,omitempty"`
	DryRun          bool `json:"dryRun,omitempty"`
}

const (
	removalHint    = `send {"member": "<name or ID>", "reason": "<why>"}`
	removalForHint = "use a duration from 1s to 1h"
	maxMemberName  = 256
)

func (b removalBody) request() (RemovalRequest, error) {
	const what = "cannot remove the member"
	odd := strings.ContainsFunc(b.Member, func(r rune) bool { return !unicode.IsPrint(r) })
	if b.Member == "" || odd || utf8.RuneCountInString(b.Member) > maxMemberName {
		return RemovalRequest{}, badRequest("name it as quorumctl member list shows it",
			"%s: member: %q is not a name or ID", what, shorten(b.Member))
	}
	reason, err := oneLine(b.Reason, what)
	if err != nil {
		return RemovalRequest{}, err
	}
	d, err := lasting(b.For, what, bounds{MinRemoval, MaxRemoval, DefaultRemoval, removalForHint})
	if err != nil {
		return RemovalRequest{}, err
	}
	return RemovalRequest{
		Member: b.Member, Reason: reason, Live: b.Live, For: d, WithoutSnapshot: b.WithoutSnapshot,
		DryRun: b.DryRun,
	}, nil
}
