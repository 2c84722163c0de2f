// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package hoststate

import (
	"path/filepath"
	"time"
)

// healthyPeriodName is the file in the runtime directory with the healthy period of an ejected host.
const healthyPeriodName = "healthy-period.json"

// HealthyPeriod is the uninterrupted time for which this host has been healthy since its member was ejected. A reboot
// restarts it. The zero value means none.
type HealthyPeriod struct {
	BootID string        `json:"bootID"`
	Member ID            `json:"member"` // the member that was ejected last
	Began  time.Duration `json:"began"`  // when the period began, since boot
	Seen   time.Duration `json:"seen"`   // time since boot at which the host was last observed healthy
}

// NoteHealthyPeriod records the period, so that a restarted agent continues it. The zero value clears the record.
func (f *State) NoteHealthyPeriod(s HealthyPeriod) error {
	defer f.writes()()
	if err := writeJSON(f.disk, filepath.Join(f.runtime, healthyPeriodName), s, false); err != nil {
		return err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.period = s
	return nil
}

// recordedPeriod returns the period recorded during the given boot, or the zero value.
func (f *State) recordedPeriod(bootID string, now time.Duration) HealthyPeriod {
	f.mu.Lock()
	defer f.mu.Unlock()
	s := f.period
	if s.BootID != bootID || s.Began < 0 || s.Seen < s.Began || s.Seen > now {
		return HealthyPeriod{}
	}
	return s
}
