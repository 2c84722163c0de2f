// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"slices"
	"time"

	"github.com/quorumd/quorumd/agent/autoreboot"
)

// Open reports whether snapshots may be saved at the given time.
func (b Backup) Open(at time.Time) bool {
	return len(b.Windows) == 0 || open(b.Windows, at)
}

// Shut returns why the host may not be taken down automatically at the given time: a blackout, or no open window. It
// returns an empty string if the host may be taken down.
func (m Maintenance) Shut(at time.Time) string {
	for _, text := range m.Blackouts {
		if b, err := autoreboot.ParseBlackout(text); err == nil && b.Contains(at) { // the configuration is valid
			return "there is a blackout: " + text
		}
	}
	if !open(m.Windows, at) {
		return "no maintenance window is open"
	}
	return ""
}

// open reports whether one of the windows is open at the given time.
func open(windows []string, at time.Time) bool {
	return slices.ContainsFunc(windows, func(text string) bool {
		w, err := autoreboot.ParseWindow(text)
		return err == nil && w.Contains(at) // the configuration is valid
	})
}
