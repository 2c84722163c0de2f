// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package control

import (
	"time"

	"github.com/quorumd/quorumd/agent/policy"
)

// RetireRequest requests that a host leave the cluster for good, or that its retirement be undone.
type RetireRequest struct {
	Host string `json:"host"` // name or ID of the host
	// name or ID of the host that replaces the retired host's voter; if empty, the best-ranked host
	Successor string `json:"successor,omitempty"`
	Reason    string `json:"reason,omitempty"` // one line; required unless Undo is set
	Undo      bool   `json:"undo,omitempty"`   // let the host join again
	// an operation took the host down, and the host will not return: end the operation, and remove its member
	Lost bool `json:"lost,omitempty"`
	// only check the request, and return the plan
	DryRun bool `json:"dryRun,omitempty"`
}

// The values of Retired.State.
const (
	RetiredLeaves = "leaves" // the host still has a member, or is in an operation
	RetiredLeft   = "left"   // the host can be switched off
	// the record of the retirement cannot be read: the host does not join, and its member is not removed
	RetiredUnreadable = "unreadable"
)

// Retired is a host that an operator has retired.
type Retired struct {
	ID      string `json:"id"`
	Name    string `json:"name,omitempty"`
	PeerURL string `json:"peerURL,omitempty"`
	// Successor is the name of the host that an operator has chosen to replace the retired host; absent if any host may
	// replace it.
	Successor string    `json:"successor,omitempty"`
	By        string    `json:"by,omitempty"`
	Reason    string    `json:"reason,omitempty"`
	Since     time.Time `json:"since,omitzero"`
	// Member is the role of the host's member, voter or learner; absent if the host has no member.
	Member policy.Role `json:"member,omitempty"`
	State  string      `json:"state"` // leaves, left or unreadable
}

// Label returns the name of the host, or its ID if its name is unknown.
func (r Retired) Label() string {
	if r.Name == "" {
		return r.ID
	}
	return r.Name
}

// Retirement is the retirement of a host with the steps that are left, or its end.
type Retirement struct {
	APIVersion string  `json:"apiVersion"`
	Host       Retired `json:"host"`
	Voters     int     `json:"voters"` // now
	// how many more voters may fail without losing quorum; below 0 if there is no quorum now
	FaultTolerance int               `json:"faultTolerance"`
	Steps          []policy.PlanStep `json:"steps"` // remaining steps, in order; empty if the retirement is undone
	// the size of the cluster, if it was not recorded before and is recorded together with the retirement
	Size *Size `json:"size,omitempty"`
	Undo bool  `json:"undo,omitempty"` // the retirement is undone
	Lost bool  `json:"lost,omitempty"` // the host's operation is ended, and the removal of its member is requested
	// nothing to record: the host is retired already, or it is not retired if Undo is set
	Unchanged bool `json:"unchanged,omitempty"`
	DryRun    bool `json:"dryRun,omitempty"` // nothing was recorded
}

// RetiredHosts lists the retired hosts.
type RetiredHosts struct {
	APIVersion string    `json:"apiVersion"`
	Hosts      []Retired `json:"hosts"` // by ID
}
