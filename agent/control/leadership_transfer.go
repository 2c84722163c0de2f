// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package control

import (
	"time"

	"github.com/quorumd/quorumd/agent/policy"
	"github.com/quorumd/quorumd/agent/record"
)

// TransferTime is how long a requested leadership transfer may wait before it expires.
const TransferTime = time.Minute

// TransferRequest requests that leadership be transferred to another voter.
type TransferRequest struct {
	Host   string `json:"host,omitempty"`   // name or ID of the voter; if absent, the best voter
	Reason string `json:"reason,omitempty"` // one line
	// only check the request, and return the plan
	DryRun bool `json:"dryRun,omitempty"`
}

// RequestedTransfer is a leadership transfer as requested on this host. quorumd on this host keeps it only in memory,
// so it is lost when quorumd restarts.
type RequestedTransfer struct {
	MemberID record.MemberID `json:"memberID"` // the voter that will become the leader
	Name     string          `json:"name"`     // name of the voter that will become the leader
	From     string          `json:"from"`     // the leader at the time of the request; empty if there was none
	Reason   string          `json:"reason,omitempty"`
	By       string          `json:"by"`
	Since    time.Time       `json:"since"`
	Until    time.Time       `json:"until"` // when the request expires
}

// Transfer is a requested leadership transfer with its steps.
type Transfer struct {
	APIVersion string `json:"apiVersion"`
	RequestedTransfer
	Steps     []policy.PlanStep `json:"steps"` // empty if the voter leads already
	Warnings  []string          `json:"warnings"`
	Unchanged bool              `json:"unchanged,omitempty"` // the voter leads already, and nothing was requested
	DryRun    bool              `json:"dryRun,omitempty"`    // nothing was requested
}

// TransferStanding is a requested leadership transfer and what it waits for.
type TransferStanding struct {
	RequestedTransfer
	Code policy.ReasonCode `json:"code"` // code of the reason why the transfer waits
	Text string            `json:"text"`
}

// TransferEnd is the end of the last leadership transfer requested on this host since its quorumd was started.
type TransferEnd struct {
	RequestedTransfer
	Ended time.Time `json:"ended"`
	// empty if the voter leads; otherwise the code of the reason why the transfer ended
	Code policy.ReasonCode `json:"code,omitempty"`
	Text string            `json:"text"`
}
