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

// BootstrapAttempt is what lies there.
type BootstrapAttempt struct {
	List    string `json:"list"`    // the digest of the list of hosts
	Attempt string `json:"attempt"` // as its first host has named it
	Own     bool   `json:"own"`     // this is the first host, and may make the cluster
}

// BootstrapAttempt gives the attempt that this host stands by; empty when there is none.
func (f *State) BootstrapAttempt() BootstrapAttempt {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.founding
}

// BeginBootstrapAttempt notes an attempt of this host's own.
func (f *State) BeginBootstrapAttempt(list string) error {
	return f.standBy(BootstrapAttempt{List: list, Attempt: rand.Text(), Own: true})
}

// CommitToAttempt notes the attempt that this host stands by. It outlives a loss of power before anybody reads it here,
// and is refused when there is another, or when this host was told to make a cluster itself.
func (f *State) CommitToAttempt(list, attempt string) error {
	return f.standBy(BootstrapAttempt{List: list, Attempt: attempt})
}

func (f *State) standBy(next BootstrapAttempt) error {
	defer f.writes()()
	switch was := f.BootstrapAttempt(); {
	case was == next:
		return nil
	case f.Bootstrap() != nil:
		return errors.New("cannot stand by an attempt to make a cluster: this host makes one")
	case was != BootstrapAttempt{}:
		return fmt.Errorf("cannot stand by an attempt to make a cluster: %s names another", f.BootstrapAttemptPath())
	}
	if err := writeJSON(f.disk, f.BootstrapAttemptPath(), next, true); err != nil {
		return err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.founding = next
	return nil
}

// BootstrapAttemptPath is the file, for people.
func (f *State) BootstrapAttemptPath() string { return filepath.Join(f.state, foundingName) }
