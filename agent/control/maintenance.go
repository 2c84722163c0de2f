// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package control

import (
	"context"
	"time"
)

// The Work of a Maintenance and of a Rollout.
const (
	WorkMaintenance = "maintenance" // etcd is down until an operator ends it
	WorkRestart     = "restart"     // the unit is restarted
	WorkReboot      = "reboot"      // the machine is rebooted
	WorkCommand     = "command"     // a program on the host runs while etcd is down
)

// Bounds and default for how long maintenance may last.
const (
	MinMaintenance     = time.Minute
	MaxMaintenance     = 7 * 24 * time.Hour
	DefaultMaintenance = 4 * time.Hour
)

// MaintenanceRequest requests that this host be taken down, one host at a time.
type MaintenanceRequest struct {
	Work string `json:"work"` // WorkMaintenance, WorkRestart, WorkReboot or WorkCommand
	// with WorkCommand: the name of the program in commands.d of the hooks directory
	Command string `json:"command,omitempty"`
	Reason  string `json:"reason"` // required, one line
	// MinMaintenance to MaxMaintenance, DefaultMaintenance if absent; after that it is overdue, which only raises an
	// alert
	For Duration `json:"for,omitempty"`
	// reserve the operation only: etcd keeps running
	KeepRunning bool `json:"keepRunning,omitempty"`
	// with a reboot: quorumd makes it safe and waits for it, the requester reboots
	External bool `json:"external,omitempty"`
	// only check the request, and return what it would be
	DryRun bool `json:"dryRun,omitempty"`
	// with such a reboot: it comes within seconds whatever the answer; only requested by the host itself
	Hurried bool `json:"-"`
}

// The State of a Maintenance.
const (
	MaintenanceWaiting   = "waiting"   // in the queue
	MaintenanceStopping  = "stopping"  // transferring leadership and stopping etcd
	MaintenanceSafe      = "safe"      // the machine is safe to touch
	MaintenanceWorking   = "working"   // etcd is stopped, and the command runs
	MaintenanceReturning = "returning" // etcd is started, and catches up
)

// Maintenance is this host's request, until the host is back or the request is cancelled.
type Maintenance struct {
	Work        string    `json:"work"`
	Command     string    `json:"command,omitempty"` // name of the program
	Reason      string    `json:"reason"`
	By          string    `json:"by"`
	Since       time.Time `json:"since"`          // time of the request
	Until       time.Time `json:"until,omitzero"` // when it becomes overdue
	Overdue     bool      `json:"overdue"`
	KeepRunning bool      `json:"keepRunning"`
	External    bool      `json:"external"`
	ByOthers    bool      `json:"byOthers,omitempty"` // others run etcd, and stop it once that is safe
	Rollout     string    `json:"rollout,omitempty"`  // ID of the rollout that requested it
	State       string    `json:"state"`
	DryRun      bool      `json:"dryRun,omitempty"` // nothing was requested
}

// The codes of a MaintenanceEnd that are no fault.
const (
	CodeCycled    = "CYCLED"    // the host was down and is back
	CodeCancelled = "CANCELLED" // the request was cancelled while queued
)

// MaintenanceEnd is how this host's last maintenance ended.
type MaintenanceEnd struct {
	Work   string    `json:"work"`
	Reason string    `json:"reason"`
	By     string    `json:"by"` // who requested it
	Since  time.Time `json:"since"`
	Ended  time.Time `json:"ended"`
	Code   string    `json:"code"` // CYCLED, CANCELLED, or the code of the reason for another end
	Text   string    `json:"text"`
}

// Maintainer is the part of a Backend for what requests maintenance on the host itself: reboot agents, automatic
// reboots, and the reaction to a shutdown.
type Maintainer interface {
	AskMaintenance(ctx context.Context, req MaintenanceRequest, by string) (Maintenance, error)
	EndMaintenance(ctx context.Context, by string) error
	Status() Status
}
