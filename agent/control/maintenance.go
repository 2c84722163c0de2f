// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package control

import (
	"context"
	"time"

	"github.com/quorumd/quorumd/agent/policy"
)

// Bounds and default for how long maintenance may last.
const (
	MinMaintenance     = time.Minute
	MaxMaintenance     = 7 * 24 * time.Hour
	DefaultMaintenance = 4 * time.Hour
)

// MaintenanceRequest requests work on this host. Only one host at a time is down for work.
type MaintenanceRequest struct {
	Work policy.Work `json:"work"`
	// with policy.WorkCommand: the name of the program in commands.d of the hooks directory
	Command string `json:"command,omitempty"`
	Reason  string `json:"reason"` // why; required, one line
	// MinMaintenance to MaxMaintenance, DefaultMaintenance if absent; afterwards the work is overdue, which only raises
	// an alert
	For Duration `json:"for,omitempty"`
	// reserve the operation only: etcd keeps running
	KeepRunning bool `json:"keepRunning,omitempty"`
	// for maintenance: quorumd may call the work off and start etcd again if the cluster needs this host's vote
	Interruptible bool `json:"interruptible,omitempty"`
	// for a reboot: quorumd reports when the reboot is safe and waits, and the requester reboots the machine
	External bool `json:"external,omitempty"`
	// only check the request, and return the maintenance that would start
	DryRun bool `json:"dryRun,omitempty"`
	// with External: the machine goes down within seconds, whatever quorumd answers; only quorumd on that machine sets
	// this
	Hurried bool `json:"-"`
}

// Maintenance is this host's request. It ends when the host is back or the request is cancelled.
type Maintenance struct {
	Work        policy.Work `json:"work"`
	Command     string      `json:"command,omitempty"` // name of the program
	Reason      string      `json:"reason"`
	By          string      `json:"by"`
	Since       time.Time   `json:"since"`          // time of the request
	Until       time.Time   `json:"until,omitzero"` // when the maintenance becomes overdue
	Overdue     bool        `json:"overdue"`
	KeepRunning bool        `json:"keepRunning"`
	External    bool        `json:"external"`
	// Interruptible means that quorumd calls the work off if the cluster needs the vote of this host.
	Interruptible bool `json:"interruptible"`
	// Recalled is why quorumd has called the work off and brings the host back; absent if it has not.
	Recalled string `json:"recalled,omitempty"`
	// ByOthers means that a program other than quorumd runs etcd, and stops etcd when that is safe.
	ByOthers bool                `json:"byOthers,omitempty"`
	Rollout  string              `json:"rollout,omitempty"` // ID of the rollout that requested the work
	State    policy.RequestState `json:"state"`
	DryRun   bool                `json:"dryRun,omitempty"` // nothing was requested
}

// MaintenanceEnd is the end of this host's last maintenance.
type MaintenanceEnd struct {
	Work   policy.Work       `json:"work"`
	Reason string            `json:"reason"`
	By     string            `json:"by"` // who requested the maintenance
	Since  time.Time         `json:"since"`
	Ended  time.Time         `json:"ended"`
	Code   policy.ReasonCode `json:"code"` // CYCLED, CANCELLED, RECALLED, or the code of another reason why it ended
	Text   string            `json:"text"`
}

// Maintainer is the part of the agent that requests maintenance of its own host, for reboot agents, automatic reboots
// and shutdowns.
type Maintainer interface {
	RequestMaintenance(ctx context.Context, req MaintenanceRequest, by string) (Maintenance, error)
	EndMaintenance(ctx context.Context, by string) error
	Status() Status
}
