// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package hoststate

import (
	"crypto/rand"
	"errors"
	"fmt"
	"path/filepath"
)

// attemptName is the file that records which bootstrap attempt this host is committed to. quorumd never removes it: a
// host commits once.
const attemptName = "bootstrap-attempt.json"

// BootstrapAttempt is the content of that file.
type BootstrapAttempt struct {
	List    string `json:"list"`    // the digest of the list of hosts
	Attempt string `json:"attempt"` // as its first host has named it
	Own     bool   `json:"own"`     // this is the first host, and may make the cluster
}

// BootstrapAttempt returns the attempt that this host is committed to, or the zero value.
func (f *State) BootstrapAttempt() BootstrapAttempt {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.attempt
}

// BeginBootstrapAttempt records an attempt of this host's own.
func (f *State) BeginBootstrapAttempt(list string) error {
	return f.commit(BootstrapAttempt{List: list, Attempt: rand.Text(), Own: true})
}

// CommitToAttempt records the attempt that this host is committed to. The record is durable before it is visible here.
// It is refused if this host is committed to another attempt or bootstraps a cluster itself.
func (f *State) CommitToAttempt(list, attempt string) error {
	return f.commit(BootstrapAttempt{List: list, Attempt: attempt})
}

func (f *State) commit(next BootstrapAttempt) error {
	defer f.writes()()
	switch was := f.BootstrapAttempt(); {
	case was == next:
		return nil
	case f.Bootstrap() != nil:
		return errors.New("cannot join a bootstrap attempt: this host creates a cluster itself")
	case was != BootstrapAttempt{}:
		return fmt.Errorf("cannot join a bootstrap attempt: %s names another", f.BootstrapAttemptPath())
	}
	if err := writeJSON(f.disk, f.BootstrapAttemptPath(), next, true); err != nil {
		return err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.attempt = next
	return nil
}

// BootstrapAttemptPath returns the path of that file, for messages.
func (f *State) BootstrapAttemptPath() string { return filepath.Join(f.state, attemptName) }
