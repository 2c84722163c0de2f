// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package autoreboot

import (
	"fmt"
	"time"

	"github.com/quorumd/quorumd/agent/durationfmt"
	"github.com/quorumd/quorumd/agent/window"
)

// candidate is the host's state from which decide derives the action.
type candidate struct {
	Required string        // why packages require a reboot; empty if they do not
	Veto     string        // name and reason of the veto; empty if there is none
	Up       time.Duration // time since boot
	Blackout string        // the current blackout; empty if there is none
	Open     bool          // a window is open
	Opens    time.Time     // when the next window opens; zero if a window is open, or none opens soon
	Asked    bool          // maintenance of the host is requested or in progress
	Own      bool          // the maintenance was requested by this package
	Waiting  bool          // the maintenance was requested and has not begun
}

// candidateAt returns a candidate with the state of the windows and blackouts at the given time.
func candidateAt(times window.Times, at time.Time) candidate {
	now := candidate{Blackout: times.Blackout(at), Open: times.Open(at)}
	if !now.Open {
		now.Opens = times.Opens(at)
	}
	return now
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
	case s.Required == "" || s.Veto == "" && s.Up >= rebootsApart && s.Blackout == "" && s.Open:
		return ""
	case s.Veto != "":
		return "there is a veto: " + s.Veto
	case s.Up < rebootsApart:
		return fmt.Sprintf("the machine was booted %s ago; automatic reboots are at least a day apart",
			durationfmt.Text(s.Up.Round(time.Minute)))
	case s.Blackout != "":
		return "there is a blackout: " + s.Blackout
	case !s.Opens.IsZero():
		return "the next window opens " + s.Opens.Format("Mon 2006-01-02 15:04 MST")
	}
	return "no window is open"
}
