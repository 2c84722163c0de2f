// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package control

import (
	"time"

	"github.com/quorumd/quorumd/agent/policy"
)

// ResizeRequest requests a different number of voters. Hosts then join, or voters leave, one at a time.
type ResizeRequest struct {
	Voters int    `json:"voters"`           // odd, 1 to 9
	Reason string `json:"reason,omitempty"` // one line
	// for a resize to 1 voter: do not wait for a recent snapshot before voters leave
	WithoutSnapshot bool `json:"withoutSnapshot,omitempty"`
	// the revision of an earlier answer: refuse the request if the size has been changed since
	IfRevision *int64 `json:"ifRevision,omitempty"`
	// only check the request, and return the plan
	DryRun bool `json:"dryRun,omitempty"`
}

// Size is the number of voters to which an operator has resized the cluster.
type Size struct {
	Voters int `json:"voters"`
	// the cluster may shrink to one voter without a recent snapshot
	WithoutSnapshot bool      `json:"withoutSnapshot,omitempty"`
	By              string    `json:"by"`
	Reason          string    `json:"reason,omitempty"`
	Since           time.Time `json:"since"`
}

// Resize is the size of the cluster and the steps that are left until it has that number of voters.
type Resize struct {
	APIVersion string `json:"apiVersion"`
	Voters     int    `json:"voters"`         // now
	Target     int    `json:"target"`         // the size: as resized by an operator, otherwise as configured
	Configured int    `json:"configured"`     // the configured size on this host
	Size       *Size  `json:"size,omitempty"` // absent if no operator has resized the cluster
	Revision   int64  `json:"revision"`       // revision of the size's record in etcd; 0 if there is no record
	// how many more voters may fail without losing quorum; below 0 if there is no quorum now
	FaultTolerance int               `json:"faultTolerance"`
	Steps          []policy.PlanStep `json:"steps"` // remaining steps, in order; empty if there are none
	Warnings       []string          `json:"warnings"`
	Unchanged      bool              `json:"unchanged,omitempty"` // the cluster had already been resized to that size
	DryRun         bool              `json:"dryRun,omitempty"`    // nothing was recorded
}
