// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package hoststate

import (
	"fmt"
	"path/filepath"
	"slices"
	"sync"
	"time"
)

const (
	bootsName = "boots.json" // file in the state directory
	bootsKept = 32
)

// boot is one boot of this machine that the agent has recorded.
type boot struct {
	ID string    `json:"id"`
	At time.Time `json:"at"` // when the machine booted, according to the wall clock at that time
	// Ended reports that the agent exited cleanly, as it does on an orderly shutdown. If it is false for an earlier
	// boot, the machine went down without a signal to the agent, or the agent had crashed.
	Ended bool `json:"ended,omitempty"`
}

// Boots records on disk when this machine booted, and whether the agent exited cleanly before the next boot. Its
// methods are safe for concurrent use.
type Boots struct {
	disk Files
	path string

	writing sync.Mutex // held during a write, which may hang if the disk hangs; readers do not take it
	mu      sync.Mutex
	kept    []boot // the current boot is last; the slice is replaced, never changed
}

// OpenBoots reads the record in the state directory and adds the boot with that ID and time. An unreadable record
// counts as empty.
func OpenBoots(disk Files, state, id string, at time.Time) *Boots {
	b := &Boots{disk: disk, path: filepath.Join(state, bootsName)}
	var kept []boot
	if _, err := readJSON(disk, b.path, &kept); err != nil {
		kept = nil
	}
	kept = slices.DeleteFunc(kept, func(before boot) bool { return before.ID == id })
	kept = append(kept, boot{ID: id, At: at})
	b.kept = kept[max(0, len(kept)-bootsKept):]
	return b
}

// Begin records that the agent is running and has not exited yet. It may hang if the disk hangs.
func (b *Boots) Begin() error { return b.note(false) }

// End records that the agent exits cleanly. It may hang if the disk hangs.
func (b *Boots) End() error { return b.note(true) }

func (b *Boots) note(ended bool) error {
	b.writing.Lock()
	defer b.writing.Unlock()
	b.mu.Lock()
	next := slices.Clone(b.kept)
	b.mu.Unlock()
	next[len(next)-1].Ended = ended
	if err := writeJSON(b.disk, b.path, next, true); err != nil {
		return fmt.Errorf("cannot save the record of the machine's boots: %w", err)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.kept = next
	return nil
}

// Since counts the boots after a time, and how many of them followed a boot in which the agent did not exit cleanly.
// The first recorded boot never counts as one of these, because nothing is known about the boot before it.
func (b *Boots) Since(from time.Time) (all, unannounced int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for i, this := range b.kept {
		if !this.At.After(from) {
			continue
		}
		all++
		if i > 0 && !b.kept[i-1].Ended {
			unannounced++
		}
	}
	return all, unannounced
}
