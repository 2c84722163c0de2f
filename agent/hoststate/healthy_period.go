// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package hoststate

import (
	"path/filepath"
	"time"
)

// stretchName is the file in the runtime directory that tells of the clean stretch of a host that was taken out.
const stretchName = "clean-stretch.json"

// HealthyPeriod is since when this host has been well without a break, after a member of it was taken out. A reboot
// begins it anew. The zero value is none.
type HealthyPeriod struct {
	BootID string        `json:"bootID"`
	Member ID            `json:"member"` // that was taken out last
	Began  time.Duration `json:"began"`  // since boot
	Seen   time.Duration `json:"seen"`   // since boot: when it was last known to go on
}

// NoteHealthyPeriod notes it, so that an agent that starts anew goes on with it; the zero value forgets it.
func (f *State) NoteHealthyPeriod(s HealthyPeriod) error {
	defer f.writes()()
	if err := writeJSON(f.disk, filepath.Join(f.runtime, stretchName), s, false); err != nil {
		return err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.stretch = s
	return nil
}

// cleanStretch gives what was noted in that boot; what cannot be so is none.
func (f *State) cleanStretch(bootID string, now time.Duration) HealthyPeriod {
	f.mu.Lock()
	defer f.mu.Unlock()
	s := f.stretch
	if s.BootID != bootID || s.Began < 0 || s.Seen < s.Began || s.Seen > now {
		return HealthyPeriod{}
	}
	return s
}
