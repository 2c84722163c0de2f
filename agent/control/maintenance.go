// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package control

import (
	"time"

	"github.com/quorumd/quorumd/agent/hooks"
)

// What a host can be taken down for: the Work of a Maintenance and of a Rollout.
const (
	WorkMaintenance = "maintenance" // etcd is down until somebody says that it is over
	WorkRestart     = "restart"     // the unit is restarted
	WorkReboot      = "reboot"      // the machine is rebooted
	WorkCommand     = "command"     // a program that lies on the host runs while etcd is down
)

// The bounds of how long a maintenance is meant to last, and how long if nobody says.
const (
	MinMaintenance     = time.Minute
	MaxMaintenance     = 7 * 24 * time.Hour
	DefaultMaintenance = 4 * time.Hour
)

// MaintenanceRequest asks for this host to be taken down, when its turn has come.
type MaintenanceRequest struct {
	Work    string // WorkMaintenance, WorkRestart, WorkReboot or WorkCommand
	Command string // of WorkCommand: the name of the program in commands.d, beside the hooks
	Reason  string // required, one line
	// MinMaintenance to MaxMaintenance; after that it is overdue, which alerts and does nothing else
	For         time.Duration
	KeepRunning bool // the turn only: etcd runs on
	External    bool // of a reboot: quorumd makes it safe and waits for it, somebody else does it
	// of such a reboot: it comes within seconds whatever is answered; asked for on the host alone
	Hurried bool
}

// How far a maintenance is: its State.
const (
	MaintenanceWaiting   = "waiting"   // for its turn
	MaintenanceStopping  = "stopping"  // leadership is handed over and etcd stopped
	MaintenanceSafe      = "safe"      // the machine may be touched
	MaintenanceWorking   = "working"   // etcd is stopped, and the command is run that was asked for
	MaintenanceReturning = "returning" // etcd is started, and followed until it has caught up
)

// Maintenance is what has been asked of this host, until the host is back or the wish withdrawn.
type Maintenance struct {
	Work        string    `json:"work"`
	Command     string    `json:"command,omitempty"` // the name of the program
	Reason      string    `json:"reason"`
	By          string    `json:"by"`
	Since       time.Time `json:"since"`          // when it was asked for
	Until       time.Time `json:"until,omitzero"` // when it becomes overdue
	Overdue     bool      `json:"overdue"`
	KeepRunning bool      `json:"keepRunning"`
	External    bool      `json:"external"`
	ByOthers    bool      `json:"byOthers,omitempty"` // others run etcd, and stop it once it is safe
	Rollout     string    `json:"rollout,omitempty"`  // the ID of the rollout that asked
	State       string    `json:"state"`
}

// The codes of a MaintenanceEnd that mean no fault.
const (
	CodeCycled    = "CYCLED"    // the host was down and is back
	CodeWithdrawn = "WITHDRAWN" // the wish was taken back before its turn came
)

// MaintenanceEnd is how the newest maintenance of this host that is over has ended.
type MaintenanceEnd struct {
	Work   string    `json:"work"`
	Reason string    `json:"reason"`
	By     string    `json:"by"` // who asked for it
	Since  time.Time `json:"since"`
	Ended  time.Time `json:"ended"`
	Code   string    `json:"code"` // CodeCycled, CodeWithdrawn, or that of the reason why it ended otherwise
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
}

const (
	maintenanceHint    = `send {"work": "maintenance", "reason": "<why>", "for": "4h"}`
	maintenanceForHint = "give a duration from 1m to 168h, and ask again if it takes longer"
)

func (b maintenanceBody) request() (MaintenanceRequest, error) {
	const what = "cannot take the host down"
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
		return MaintenanceRequest{}, badRequest("leave keepRunning out", "%s: a %s does not let etcd run on", what,
			b.Work)
	}
	if b.External && b.Work != WorkReboot {
		return MaintenanceRequest{}, badRequest("leave external out", "%s: only a reboot can be somebody else's", what)
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
		External: b.External,
	}, nil
}

// checkCommand refuses what is no name of a program, and a name where none is wanted.
func checkCommand(work, name, what string) error {
	if work != WorkCommand {
		if name != "" {
			return badRequest("leave command out", "%s: a %s runs no command", what, work)
		}
		return nil
	}
	if err := hooks.CheckName(name); err != nil {
		return badRequest("name a program that lies in commands.d, beside the hooks, on every host that is to run it",
			"%s: command: %v", what, err)
	}
	return nil
}
