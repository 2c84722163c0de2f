// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"fmt"
	"time"

	"github.com/quorumd/quorumd/agent/durationfmt"
)

// RebootableHost is the state of a host that may be rebooted automatically, at times that its operator allows.
type RebootableHost struct {
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

// RebootMove is what to do about an automatic reboot.
type RebootMove uint8

// The moves.
const (
	RebootNone     RebootMove = iota // none is required
	RebootPending                    // it, or something else, is on its way
	RebootWait                       // until it is allowed
	RebootAsk                        // request its turn, as any other reboot
	RebootWithdraw                   // cancel the request: its time is over, or there is a veto
)

// rebootsApart is the least time between two boots, if the second is an automatic one.
const rebootsApart = 24 * time.Hour

// Move returns what to do now, and why no reboot is requested.
func (s RebootableHost) Move() (move RebootMove, why string) {
	why = s.against()
	allowed := s.Required != "" && why == ""
	switch {
	case s.Asked && s.Own && s.Waiting && !allowed:
		return RebootWithdraw, why
	case s.Asked:
		return RebootPending, why
	case allowed:
		return RebootAsk, ""
	case why != "":
		return RebootWait, why
	}
	return RebootNone, ""
}

// against explains why a required reboot is not requested now.
func (s RebootableHost) against() string {
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
