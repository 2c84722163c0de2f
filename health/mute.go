// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package health

import (
	"fmt"
	"strings"
	"time"
)

// Mute is a person's word that a finding which only advises is known, and need not be told for a while. It lies in the
// state directory: the agent may be restarted meanwhile, and the machine too.
type Mute struct {
	Code   Code      `json:"code"`
	State  State     `json:"state"`           // a worse one breaks it
	Count  int       `json:"count,omitempty"` // how many things were found, if that is told; more break it
	Grade  float64   `json:"grade,omitempty"` // how bad it was, if that is told; twice as bad breaks it
	Reason string    `json:"reason"`
	By     string    `json:"by"`
	Since  time.Time `json:"since"`
	Until  time.Time `json:"until"`
}

// MuteEnd is a mute that holds no more, and why.
type MuteEnd struct {
	Mute
	Why string
}

// Over returns why a mute holds no more by what is found now; empty while it does.
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
