// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package autoreboot

import (
	"fmt"
	"time"

	"github.com/quorumd/quorumd/agent/durationfmt"
)

// candidate is the host's state from which decide derives the action.
type candidate struct {
	Required string        // why packages require a reboot; empty if they do not
	Veto     string        // name and reason of the veto; empty if there is none
	Up       time.Duration // time since boot
	Shut     string        // why the times do not allow a reboot now: a blackout, or no open window; empty if they do
	Asked    bool          // maintenance of the host is requested or in progress
	Own      bool          // the maintenance was requested by this package
	Waiting  bool          // the maintenance was requested and has not begun
}

// action is the result of a decision about an automatic reboot.
type action uint8

// The actions.
const (
	actionNone    action = iota // no reboot is required
	actionPending               // maintenance is requested or in progress
	actionWait                  // a reboot is required but not allowed now
	actionRequest               // request a reboot
	actionCancel                // cancel the request, because the reboot is no longer allowed or required
)

// rebootsApart is the minimum time between a boot and an automatic reboot.
const rebootsApart = 24 * time.Hour

// decide returns the action to take now, and why a required reboot is not requested.
func (s candidate) decide() (next action, why string) {
	why = s.obstacle()
	allowed := s.Required != "" && why == ""
	switch {
	case s.Asked && s.Own && s.Waiting && !allowed:
		return actionCancel, why
	case s.Asked:
		return actionPending, why
	case allowed:
		return actionRequest, ""
	case why != "":
		return actionWait, why
	}
	return actionNone, ""
}

// obstacle returns why a required reboot must not be requested now, or "".
func (s candidate) obstacle() string {
	switch {
	case s.Required == "":
		return ""
	case s.Veto != "":
		return "there is a veto: " + s.Veto
	case s.Up < rebootsApart:
		return fmt.Sprintf("the machine was booted %s ago; automatic reboots are at least a day apart",
			durationfmt.Text(s.Up.Round(time.Minute)))
	}
	return s.Shut
}
