// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package hoststate

import (
	"fmt"
	"path/filepath"
)

const clusterName = "cluster.json"

// clusterFile records this host's cluster and member.
type clusterFile struct {
	ID     ID `json:"id"`
	Member ID `json:"member"` // this host's member; 0 if the host no longer has a member
	// Standby is the ID of this host's learner while the host is a standby; 0 when the host begins to join.
	Standby ID `json:"standby,omitzero"`
	// Lost is the member that this host gave up because its data is gone; 0 if none.
	Lost ID `json:"lost,omitzero"`
	// Mount lists the last known mount points of the member's data; empty if never observed.
	Mount string `json:"mount,omitempty"`
}

// Membership returns this host's cluster and member, or zeros.
func (f *State) Membership() (cluster, member uint64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return uint64(f.cluster.ID), uint64(f.cluster.Member)
}

// SetMembership records this host's cluster and member, and clears Lost.
func (f *State) SetMembership(cluster, member uint64) error {
	return f.setCluster(func(c *clusterFile) { c.ID, c.Member, c.Lost = ID(cluster), ID(member), 0 })
}

// Standby returns this host's learner if the host is a standby, or 0.
func (f *State) Standby() uint64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	return uint64(f.cluster.Standby)
}

// SetStandby records the ID of this host's learner, which is now a standby. The caller passes 0 when the host begins to
// join.
func (f *State) SetStandby(id uint64) error {
	if err := f.setCluster(func(c *clusterFile) { c.Standby = ID(id) }); err != nil {
		return fmt.Errorf("cannot save this host's membership: %w", err)
	}
	return nil
}

// SetLost records that this host gave up a member because its data is gone.
func (f *State) SetLost(id uint64) error {
	return f.setCluster(func(c *clusterFile) { c.Lost = ID(id) })
}

// SetMount records where the file systems with the member's data are mounted.
func (f *State) SetMount(mount string) error {
	return f.setCluster(func(c *clusterFile) { c.Mount = mount })
}

// setCluster applies a change, and writes the file if anything changed.
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
