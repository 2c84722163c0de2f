// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package hoststate

import (
	"crypto/rand"
	"errors"
	"fmt"
	"path/filepath"
)

// foundingName is the file that tells by which attempt to make a cluster this host stands. It is never removed by
// quorumd: that word is given once.
const foundingName = "founding.json"

// Founding is what lies there.
type Founding struct {
	List    string `json:"list"`    // the digest of the list of hosts
	Attempt string `json:"attempt"` // as its first host has named it
	Own     bool   `json:"own"`     // this is the first host, and may make the cluster
}

// Founding gives the attempt that this host stands by; empty when there is none.
func (f *State) Founding() Founding {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.founding
}

// BeginFounding notes an attempt of this host's own.
func (f *State) BeginFounding(list string) error {
	return f.standBy(Founding{List: list, Attempt: rand.Text(), Own: true})
}

// StandBy notes the attempt that this host stands by. It outlives a loss of power before anybody reads it here, and
// is refused when there is another, or when this host was told to make a cluster itself.
func (f *State) StandBy(list, attempt string) error {
	return f.standBy(Founding{List: list, Attempt: attempt})
}

func (f *State) standBy(next Founding) error {
	defer f.writes()()
	switch was := f.Founding(); {
	case was == next:
		return nil
	case f.Bootstrap() != nil:
		return errors.New("cannot stand by an attempt to make a cluster: this host makes one")
	case was != Founding{}:
		return fmt.Errorf("cannot stand by an attempt to make a cluster: %s names another", f.FoundingPath())
	}
	if err := writeJSON(f.disk, f.FoundingPath(), next, true); err != nil {
		return err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.founding = next
	return nil
}

// FoundingPath is the file, for people.
func (f *State) FoundingPath() string { return filepath.Join(f.state, foundingName) }
