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
	bootsName = "boots.json" // in the state directory
	bootsKept = 32
)

// boot is one boot of this machine that the agent has seen.
type boot struct {
	ID string    `json:"id"`
	At time.Time `json:"at"` // by the wall clock at that time
	// Ended says that the agent has ended in order, as it does when the machine goes down in order. Where it is
	// missing the machine stopped before anybody told the agent.
	Ended bool `json:"ended,omitempty"`
}

// Boots remembers when this machine was booted, on its disk, and whether the agent was told to end before. Its methods
// may be called at the same time.
type Boots struct {
	disk Files
	path string

	writing sync.Mutex // held while somebody writes, who may hang with the disk; no reader waits for it
	mu      sync.Mutex
	kept    []boot // the present one last; replaced, never changed
}

// OpenBoots reads what lies in the state directory, and adds the boot with that ID, which was at that time. Whatever
// cannot be read counts for nothing: there was no boot before, then.
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

// Begin notes that the agent runs: it has not ended any more. It may hang with the disk.
func (b *Boots) Begin() error { return b.note(false) }

// End notes that the agent was told to end. It may hang with the disk.
func (b *Boots) End() error { return b.note(true) }

func (b *Boots) note(ended bool) error {
	b.writing.Lock()
	defer b.writing.Unlock()
	b.mu.Lock()
	next := slices.Clone(b.kept)
	b.mu.Unlock()
	next[len(next)-1].Ended = ended
	if err := writeJSON(b.disk, b.path, next, true); err != nil {
		return fmt.Errorf("cannot note that the machine was booted: %w", err)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.kept = next
	return nil
}

// Since counts the boots after that time, and those of them before which the agent was not told to end. Nobody knows
// that of the first one that was seen.
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
