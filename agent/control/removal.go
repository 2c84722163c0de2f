// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package control

import (
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// The bounds of how long a removal may wait for its turn, and how long it does if nobody says.
const (
	MinRemoval     = time.Second
	MaxRemoval     = time.Hour
	DefaultRemoval = 5 * time.Minute
)

// RemovalRequest asks for a member to be taken out of etcd for good, when its turn has come.
type RemovalRequest struct {
	Member string        // its name, or its ID as etcdctl prints it
	Reason string        // required, one line
	Live   bool          // also if it votes and answers
	For    time.Duration // MinRemoval to MaxRemoval; what has not begun by then ends

	WithoutSnapshot bool // also if it is well, and the newest snapshot is not of late
}

// How far a removal is: its State.
const (
	RemovalWaiting = "waiting"  // for its turn
	RemovalRunning = "removing" // its operation is in flight
	RemovalDone    = "removed"  // already, before it was asked for again
)

// Removal is what this host was asked to take out of etcd.
type Removal struct {
	MemberID string    `json:"memberID"` // hexadecimal, as etcdctl prints it
	Name     string    `json:"name"`
	Reason   string    `json:"reason"`
	By       string    `json:"by"`
	Live     bool      `json:"live"` // also if it votes and answers
	Since    time.Time `json:"since"`
	Until    time.Time `json:"until"` // after which it does not begin any more
	State    string    `json:"state"`
}

// CodeRemoved is the code of a RemovalEnd that means no fault.
const CodeRemoved = "REMOVED"

// RemovalEnd is how the newest removal of this host's that is over has ended.
type RemovalEnd struct {
	MemberID string    `json:"memberID"`
	Name     string    `json:"name"`
	Reason   string    `json:"reason"`
	By       string    `json:"by"`
	Since    time.Time `json:"since"`
	Ended    time.Time `json:"ended"`
	// CodeRemoved, CodeWithdrawn when its time was over, or that of the reason why it ended otherwise
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
}

const (
	removalHint    = `send {"member": "<name or ID>", "reason": "<why>"}`
	removalForHint = "give a duration from 1s to 1h"
	maxMemberName  = 256
)

func (b removalBody) request() (RemovalRequest, error) {
	const what = "cannot remove the member"
	odd := strings.ContainsFunc(b.Member, func(r rune) bool { return !unicode.IsPrint(r) })
	if b.Member == "" || odd || utf8.RuneCountInString(b.Member) > maxMemberName {
		return RemovalRequest{}, badRequest("name it as quorumctl member list shows it",
			"%s: member: %q is no name or ID", what, shorten(b.Member))
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
	}, nil
}
