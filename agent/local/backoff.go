// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package local

import (
	"path/filepath"
	"time"
)

const (
	failuresName = "join-failures.json"
	maxBackoff   = time.Hour
)

// failuresFile counts joins that failed in a row.
type failuresFile struct {
	BootID string        `json:"bootID"`
	Count  int           `json:"count"`
	Last   time.Duration `json:"last"` // since boot
}

// NoteJoin counts a join that failed, or forgets the count after one that succeeded.
func (f *State) NoteJoin(failed bool, bootID string, now time.Duration) error {
	defer f.turn()()
	next := failuresFile{BootID: bootID, Last: now}
	f.mu.Lock()
	if failed {
		next.Count = 1
		if f.failures.BootID == bootID {
			next.Count += f.failures.Count
		}
	}
	f.failures = next
	f.mu.Unlock()
	return writeJSON(f.disk, filepath.Join(f.runtime, failuresName), next, false)
}

// Backoff gives how long to wait before the next join: base after the first failure, twice as
// long after each further one, at most an hour.
func (f *State) Backoff(bootID string, now, base time.Duration) time.Duration {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.failures.Count == 0 || f.failures.BootID != bootID {
		return 0
	}
	wait := base
	for range f.failures.Count - 1 {
		wait = min(2*wait, maxBackoff)
	}
	return max(0, f.failures.Last+wait-now)
}
