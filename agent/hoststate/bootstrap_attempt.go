// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package hoststate

import (
	"crypto/rand"
	"errors"
	"fmt"
	"path/filepath"
)

// attemptName is the file with the bootstrap attempt that this host is committed to. quorumd never removes the file, so
// a host commits only once.
const attemptName = "bootstrap-attempt.json"

// BootstrapAttempt is the content of the file attemptName.
type BootstrapAttempt struct {
	List    string `json:"list"`    // the digest of the list of hosts
	Attempt string `json:"attempt"` // the attempt's random name, chosen by its first host
	Own     bool   `json:"own"`     // this is the first host, which may bootstrap the cluster
}

// BootstrapAttempt returns the attempt that this host is committed to, or the zero value.
func (f *State) BootstrapAttempt() BootstrapAttempt {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.attempt
}

// BeginBootstrapAttempt starts this host's own attempt and commits the host to it.
func (f *State) BeginBootstrapAttempt(list string) error {
	return f.commit(BootstrapAttempt{List: list, Attempt: rand.Text(), Own: true})
}

// CommitToAttempt commits this host to another host's attempt. The record is durable before BootstrapAttempt returns
// it. CommitToAttempt fails if this host is committed to a different attempt or bootstraps a cluster itself.
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
		return fmt.Errorf("cannot join a bootstrap attempt: %s names another attempt", f.BootstrapAttemptPath())
	}
	if err := writeJSON(f.disk, f.BootstrapAttemptPath(), next, true); err != nil {
		return err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.attempt = next
	return nil
}

// BootstrapAttemptPath returns the path of the file with the attempt, for messages.
func (f *State) BootstrapAttemptPath() string { return filepath.Join(f.state, attemptName) }
