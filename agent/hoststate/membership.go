// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package hoststate

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
	// Lost is the member that this host has given up, since its data is gone; 0 when there is none.
	Lost ID `json:"lost,omitzero"`
	// Mount is where the file systems were mounted that held the member's data; empty when it was never seen.
	Mount string `json:"mount,omitempty"`
}

// Membership gives the cluster that this host belongs to and the member that it is, or zeros.
func (f *State) Membership() (cluster, member uint64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return uint64(f.cluster.ID), uint64(f.cluster.Member)
}

// SetMembership notes both. A member that was given up is forgotten with that.
func (f *State) SetMembership(cluster, member uint64) error {
	return f.setCluster(func(c *clusterFile) { c.ID, c.Member, c.Lost = ID(cluster), ID(member), 0 })
}

// Standby gives the member as which this host is a standby, or 0.
func (f *State) Standby() uint64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	return uint64(f.cluster.Standby)
}

// SetStandby notes it; 0 when the host begins a join.
func (f *State) SetStandby(id uint64) error {
	if err := f.setCluster(func(c *clusterFile) { c.Standby = ID(id) }); err != nil {
		return fmt.Errorf("cannot record what this host's member is: %w", err)
	}
	return nil
}

// SetLost notes that this host has given up a member, since its data is gone.
func (f *State) SetLost(id uint64) error {
	return f.setCluster(func(c *clusterFile) { c.Lost = ID(id) })
}

// SetMount notes where the file systems are mounted that hold the member's data.
func (f *State) SetMount(mount string) error {
	return f.setCluster(func(c *clusterFile) { c.Mount = mount })
}

// setCluster writes a change, if it is one.
func (f *State) setCluster(change func(*clusterFile)) error {
	defer f.writes()()
	f.mu.Lock()
	before := f.cluster
	f.mu.Unlock()
	next := before
	if change(&next); next == before {
		return nil
	}
	if err := writeJSON(f.disk, filepath.Join(f.state, clusterName), next, true); err != nil {
		return err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.cluster = next
	return nil
}
