// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package autoreboot

import (
	"fmt"
	"time"

	"github.com/quorumd/quorumd/agent/durationfmt"
)

// candidate is the state of a host that may be rebooted automatically, at times that its operator allows.
type candidate struct {
	Required string        // why its packages need a reboot; empty: they do not
	Veto     string        // what vetoes it and why; empty: nothing
	Up       time.Duration // since the boot
	Blackout string        // the current blackout; empty: none
	Open     bool          // a window is open
	Opens    time.Time     // when the next one opens; zero: none soon
	Asked    bool          // the host has a request, for any work
	Own      bool          // and it is for such a reboot
	Waiting  bool          // it has not begun
}

// move is what to do about an automatic reboot.
type move uint8

// The moves.
const (
	moveNone    move = iota // none is required
	movePending             // it, or something else, is on its way
	moveWait                // until it is allowed
	moveAsk                 // request it, as an operator would
	moveCancel              // cancel the request: its window has ended, or there is a veto
)

// rebootsApart is the least time between two boots, if the second is an automatic one.
const rebootsApart = 24 * time.Hour

// move returns what to do now, and why no reboot is requested.
func (s candidate) move() (next move, why string) {
	why = s.against()
	allowed := s.Required != "" && why == ""
	switch {
	case s.Asked && s.Own && s.Waiting && !allowed:
		return moveCancel, why
	case s.Asked:
		return movePending, why
	case allowed:
		return moveAsk, ""
	case why != "":
		return moveWait, why
	}
	return moveNone, ""
}

// against explains why a required reboot is not requested now.
func (s candidate) against() string {
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
