// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"fmt"
	"time"

	"github.com/quorumd/quorumd/agent/durationfmt"
)

// RebootableHost is what one sees of a host that may be rebooted by itself, at times that its operator allows.
type RebootableHost struct {
	Required string        // why its packages want a reboot; empty: they do not
	Veto     string        // who is against it and why; empty: nobody
	Up       time.Duration // since the boot
	Blackout string        // the one that it is in; empty: none
	Open     bool          // a window is open
	Opens    time.Time     // when the next one does; zero: none soon
	Asked    bool          // the host was asked to be taken down, for whatever it is
	Own      bool          // and that was for such a reboot
	Waiting  bool          // its turn has not come yet
}

// RebootMove is what to do about a reboot that nobody asks for by hand.
type RebootMove uint8

// The moves.
const (
	RebootNone     RebootMove = iota // none is required
	RebootBeside                     // it, or something else, is on its way
	RebootWait                       // until it is allowed
	RebootAsk                        // for its turn, as everybody does
	RebootWithdraw                   // what was asked for: its time is over, or there is a veto
)

// rebootsApart is the least time between two boots, if the second is an automatic one.
const rebootsApart = 24 * time.Hour

// Move tells what to do now, and why it is not to ask.
func (s RebootableHost) Move() (move RebootMove, why string) {
	why = s.against()
	allowed := s.Required != "" && why == ""
	switch {
	case s.Asked && s.Own && s.Waiting && !allowed:
		return RebootWithdraw, why
	case s.Asked:
		return RebootBeside, why
	case allowed:
		return RebootAsk, ""
	case why != "":
		return RebootWait, why
	}
	return RebootNone, ""
}

// against tells why a reboot that is required is not to be asked for now.
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
