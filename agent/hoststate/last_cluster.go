// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package hoststate

import (
	"path/filepath"
	"time"
)

// lastClusterName is the file in the state directory with the ID of the cluster that last answered this host. With this
// file, even a spare that was never a member does not bootstrap a second cluster when no member runs.
const lastClusterName = "seen.json"

// lastClusterFile is the content of the file lastClusterName.
type lastClusterFile struct {
	ID ID        `json:"id"`
	At time.Time `json:"at"` // when the ID was recorded
}

// LastCluster returns the ID of the cluster that last answered this host, or 0.
func (f *State) LastCluster() uint64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	return uint64(f.lastCluster.ID)
}

// SetLastCluster records the cluster that has just answered this host.
func (f *State) SetLastCluster(cluster uint64, at time.Time) error {
	defer f.writes()()
	next := lastClusterFile{ID: ID(cluster), At: at}
	if err := writeJSON(f.disk, f.LastClusterPath(), next, true); err != nil {
		return err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.lastCluster = next
	return nil
}

// LastClusterPath returns the path of the file with the last cluster, for messages.
func (f *State) LastClusterPath() string { return filepath.Join(f.state, lastClusterName) }
