// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package health

import (
	"fmt"
	"strings"
	"time"
)

// Mute is an operator's decision not to be alerted to a finding that only advises, for a limited time. It is kept in
// the state directory and survives restarts of the agent and the machine.
type Mute struct {
	Code   Code      `json:"code"`
	State  State     `json:"state"`           // a worse state ends the mute
	Count  int       `json:"count,omitempty"` // number of items, if counted; a higher number ends the mute
	Grade  float64   `json:"grade,omitempty"` // severity, if graded; twice the severity ends the mute
	Reason string    `json:"reason"`
	By     string    `json:"by"`
	Since  time.Time `json:"since"`
	Until  time.Time `json:"until"`
}

// MuteEnd is a mute that has ended, and why.
type MuteEnd struct {
	Mute
	Why string
}

// Over returns why the mute has ended, by its time or by the current findings; empty while it is in force.
func (m Mute) Over(found []Finding, now time.Time) string {
	if !now.Before(m.Until) {
		return "expired"
	}
	for _, f := range found {
		switch {
		case f.Code != m.Code:
		case f.Gates != Nothing:
			return "it now gates " + strings.Join(f.Gates.Names(), ", ")
		case f.State.WorseThan(m.State):
			return fmt.Sprintf("it got worse: %s, was %s", f.State, m.State)
		case m.Count > 0 && f.Count > m.Count:
			return fmt.Sprintf("more instances: %d, was %d", f.Count, m.Count)
		case m.Grade > 0 && f.Grade >= m.Grade+1:
			return "it is twice as bad as when it was muted"
		}
	}
	return ""
}
