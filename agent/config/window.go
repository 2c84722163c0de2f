// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"time"

	"github.com/quorumd/quorumd/agent/window"
)

// Open reports whether snapshots may be saved at the given time.
func (b Backup) Open(at time.Time) bool {
	times, err := window.Parse(b.Windows, nil)
	return len(b.Windows) == 0 || err == nil && times.Shut(at) == "" // the configuration has been checked
}

// Times returns the windows and blackouts of automatic maintenance.
func (m Maintenance) Times() (window.Times, error) { return window.Parse(m.Windows, m.Blackouts) }

// Shut returns why the host may not be taken down automatically at the given time: a blackout, or no open window. It
// returns an empty string if the host may be taken down.
func (m Maintenance) Shut(at time.Time) string {
	times, err := m.Times()
	if err != nil { // the configuration has been checked, so this does not happen
		return err.Error()
	}
	return times.Shut(at)
}
