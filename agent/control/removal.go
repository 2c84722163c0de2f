// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package control

import (
	"time"

	"github.com/quorumd/quorumd/agent/policy"
	"github.com/quorumd/quorumd/agent/record"
)

// Bounds and default for how long a removal may stay queued.
const (
	MinRemoval     = time.Second
	MaxRemoval     = time.Hour
	DefaultRemoval = 5 * time.Minute
)

// RemovalRequest requests that a member be removed from etcd for good.
type RemovalRequest struct {
	Member string `json:"member"`         // name of the member, or its ID as printed by etcdctl
	Reason string `json:"reason"`         // required, one line
	Live   bool   `json:"live,omitempty"` // remove the member even if it votes and answers
	// MinRemoval to MaxRemoval, DefaultRemoval if absent; the request expires if the removal has not begun by then
	For Duration `json:"for,omitempty"`
	// remove a healthy member even if the newest snapshot is not recent
	WithoutSnapshot bool `json:"withoutSnapshot,omitempty"`
	// only check the request, and return the removal that would start
	DryRun bool `json:"dryRun,omitempty"`
}

// The values of Removal.State.
const (
	RemovalWaiting = "waiting"  // the operation has not begun
	RemovalRunning = "removing" // the operation is in flight
	RemovalDone    = "removed"  // the member had been removed before the request
)

// RequestedRemoval is a member's removal as requested on this host.
type RequestedRemoval struct {
	MemberID record.MemberID `json:"memberID"`
	Name     string          `json:"name"` // name of the member, for display
	Reason   string          `json:"reason"`
	By       string          `json:"by"`
	Live     bool            `json:"live"` // the request applies even if the member votes and answers
	Since    time.Time       `json:"since"`
	Until    time.Time       `json:"until"` // when the request expires
}

// Removal is a requested removal and its state.
type Removal struct {
	RequestedRemoval
	State  string `json:"state"`
	DryRun bool   `json:"dryRun,omitempty"` // nothing was requested
}

// RemovalEnd is the end of the last removal requested on this host.
type RemovalEnd struct {
	RequestedRemoval
	Ended time.Time `json:"ended"`
	// REMOVED, CANCELLED if it expired, or the code of another reason why it ended
	Code policy.ReasonCode `json:"code"`
	Text string            `json:"text"`
}
