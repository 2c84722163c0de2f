// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package hoststate

import (
	"path/filepath"
	"time"
)

// lastClusterName is the file in the state directory that names the cluster which last answered this host. From it, a
// spare that has never been a member knows that a cluster exists even if no member runs any more. It then does not take
// a seemingly empty site for the place for a new cluster.
const lastClusterName = "seen.json"

// lastClusterFile is the content of that file.
type lastClusterFile struct {
	ID ID        `json:"id"`
	At time.Time `json:"at"` // when it was first noted
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

// LastClusterPath returns the path of that file, for messages.
func (f *State) LastClusterPath() string { return filepath.Join(f.state, lastClusterName) }
