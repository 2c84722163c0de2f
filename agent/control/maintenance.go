// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package control

import (
	"time"

	"github.com/quorumd/quorumd/agent/hooks"
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
	Work    string // WorkMaintenance, WorkRestart, WorkReboot or WorkCommand
	Command string // with WorkCommand: the name of the program in commands.d of the hooks directory
	Reason  string // required, one line
	// MinMaintenance to MaxMaintenance; after that it is overdue, which only raises an alert
	For         time.Duration
	KeepRunning bool // reserve the operation only: etcd keeps running
	DryRun      bool // only check the request, and return what it would be
	External    bool // with a reboot: quorumd makes it safe and waits for it, the requester reboots
	// with such a reboot: it comes within seconds whatever the answer; only requested by the host itself
	Hurried bool
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

// maintenanceBody is a MaintenanceRequest on the wire.
type maintenanceBody struct {
	Work        string `json:"work"`
	Command     string `json:"command,omitempty"`
	Reason      string `json:"reason"`
	For         string `json:"for,omitempty"`
	KeepRunning bool   `json:"keepRunning,omitempty"`
	External    bool   `json:"external,omitempty"`
	DryRun      bool   `json:"dryRun,omitempty"`
}

const (
	maintenanceHint    = `send {"work": "maintenance", "reason": "<why>", "for": "4h"}`
	maintenanceForHint = "use a duration from 1m to 168h, and request more time if it takes longer"
)

func (b maintenanceBody) request() (MaintenanceRequest, error) {
	const what = "cannot request maintenance"
	switch b.Work {
	case WorkMaintenance, WorkRestart, WorkReboot, WorkCommand:
	default:
		return MaintenanceRequest{}, badRequest(maintenanceHint, "%s: work: %q is not one of %s, %s, %s and %s",
			what, shorten(b.Work), WorkMaintenance, WorkRestart, WorkReboot, WorkCommand)
	}
	if err := checkCommand(b.Work, b.Command, what); err != nil {
		return MaintenanceRequest{}, err
	}
	if b.KeepRunning && b.Work != WorkMaintenance {
		return MaintenanceRequest{}, badRequest("leave keepRunning out", "%s: keepRunning is not possible with "+
			"%s", what,
			b.Work)
	}
	if b.External && b.Work != WorkReboot {
		return MaintenanceRequest{}, badRequest("leave external out", "%s: only a reboot can be external", what)
	}
	reason, err := oneLine(b.Reason, what)
	if err != nil {
		return MaintenanceRequest{}, err
	}
	d, err := lasting(b.For, what, bounds{MinMaintenance, MaxMaintenance, DefaultMaintenance, maintenanceForHint})
	if err != nil {
		return MaintenanceRequest{}, err
	}
	return MaintenanceRequest{
		Work: b.Work, Command: b.Command, Reason: reason, For: d, KeepRunning: b.KeepRunning,
		External: b.External, DryRun: b.DryRun,
	}, nil
}

// checkCommand refuses an invalid program name, and a name with any other work.
func checkCommand(work, name, what string) error {
	if work != WorkCommand {
		if name != "" {
			return badRequest("leave command out", "%s: a %s runs no command", what, work)
		}
		return nil
	}
	if err := hooks.CheckName(name); err != nil {
		return badRequest("name a program in commands.d, next to the hooks directories, on every host that runs it",
			"%s: command: %v", what, err)
	}
	return nil
}
