// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package hoststate

import (
	"path/filepath"
	"time"

	"github.com/quorumd/quorumd/agent/policy"
)

const failuresName = "join-failures.json"

// failuresFile counts consecutive failed joins.
type failuresFile struct {
	BootID string        `json:"bootID"`
	Count  int           `json:"count"`
	Last   time.Duration `json:"last"` // since boot
}

// NoteJoin counts a failed join. A successful join resets the count.
func (f *State) NoteJoin(failed bool, bootID string, now time.Duration) error {
	defer f.writes()()
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

// Backoff returns how much longer to wait before the next join. base is the wait after the first failure.
func (f *State) Backoff(bootID string, now, base time.Duration) time.Duration {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.failures.BootID != bootID || f.failures.Count == 0 {
		return 0
	}
	return max(0, f.failures.Last+policy.JoinBackoff(f.failures.Count, base)-now)
}
