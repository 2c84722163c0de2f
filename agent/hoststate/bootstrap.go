// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package hoststate

import (
	"crypto/rand"
	"errors"
	"fmt"
	"path/filepath"
	"time"
)

const bootstrapName = "bootstrap.json"

// BootstrapRequest is a request, by an operator or by the automatic bootstrap, that this host bootstrap a new cluster.
type BootstrapRequest struct {
	By    string    `json:"by"`
	At    time.Time `json:"at"`
	Token string    `json:"token"` // ETCD_INITIAL_CLUSTER_TOKEN of the new cluster
	// Decided means that no other listed host had a cluster or a request when this host queried them, or that all
	// listed hosts had agreed beforehand.
	Decided bool `json:"decided,omitempty"`
}

// Bootstrap returns the pending request, or nil.
func (f *State) Bootstrap() *BootstrapRequest {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.request
}

// RequestBootstrap records an operator's request, unless a request is already pending.
func (f *State) RequestBootstrap(by string, at time.Time) error {
	return f.requestBootstrap(BootstrapRequest{By: by, At: at})
}

// StartBootstrapAttempt records that this host bootstraps the cluster because all listed hosts have agreed. It does
// nothing if a request is already pending.
func (f *State) StartBootstrapAttempt(by string, at time.Time) error {
	return f.requestBootstrap(BootstrapRequest{By: by, At: at, Decided: true})
}

// DecideBootstrap marks the request with that token as decided. It does nothing if that request is no longer pending.
func (f *State) DecideBootstrap(token string) error {
	defer f.writes()()
	was := f.Bootstrap()
	if was == nil || was.Token != token || was.Decided {
		return nil
	}
	next := *was
	next.Decided = true
	return f.keepBootstrap(&next)
}

func (f *State) requestBootstrap(request BootstrapRequest) error {
	defer f.writes()()
	if f.Bootstrap() != nil {
		return nil
	}
	if f := f.BootstrapAttempt(); f.Attempt != "" && !f.Own { // this host has committed since the caller checked
		return errors.New("cannot create a cluster: this host is committed to the attempt of another host")
	}
	request.Token = "quorumd-" + rand.Text()
	return f.keepBootstrap(&request)
}

func (f *State) keepBootstrap(request *BootstrapRequest) error {
	if err := writeJSON(f.disk, filepath.Join(f.state, bootstrapName), request, true); err != nil {
		return err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.request = request
	return nil
}

// EndBootstrap removes the request, because the cluster now exists.
func (f *State) EndBootstrap() error {
	defer f.writes()()
	if err := f.disk.Remove(filepath.Join(f.state, bootstrapName)); err != nil {
		return fmt.Errorf("cannot end the bootstrap: %w", err)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.request = nil
	return nil
}
