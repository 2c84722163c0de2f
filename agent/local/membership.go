// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package local

import (
	"fmt"
	"path/filepath"
)

const clusterName = "cluster.json"

// clusterFile is what this host has been in which cluster.
type clusterFile struct {
	ID     ID `json:"id"`
	Member ID `json:"member"` // the member that this host is; 0 when it is none any more
	// Standby is the learner as which it is a standby, and has not begun to join since; 0 when it is none.
	Standby ID `json:"standby,omitzero"`
}

// Membership gives the cluster that this host belongs to and the member that it is, or zeros.
func (f *State) Membership() (cluster, member uint64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return uint64(f.cluster.ID), uint64(f.cluster.Member)
}

// SetMembership notes both.
func (f *State) SetMembership(cluster, member uint64) error {
	defer f.writes()()
	f.mu.Lock()
	next := clusterFile{ID: ID(cluster), Member: ID(member), Standby: f.cluster.Standby}
	f.mu.Unlock()
	if err := writeJSON(f.disk, filepath.Join(f.state, clusterName), next, true); err != nil {
		return err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.cluster = next
	return nil
}

// Standby gives the member as which this host is a standby, or 0.
func (f *State) Standby() uint64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	return uint64(f.cluster.Standby)
}

// SetStandby notes it; 0 when the host begins a join.
func (f *State) SetStandby(id uint64) error {
	defer f.writes()()
	f.mu.Lock()
	next := f.cluster
	f.mu.Unlock()
	if next.Standby == ID(id) {
		return nil
	}
	next.Standby = ID(id)
	if err := writeJSON(f.disk, filepath.Join(f.state, clusterName), next, true); err != nil {
		return fmt.Errorf("cannot note what this host's member is: %w", err)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.cluster = next
	return nil
}
