// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package hoststate

import (
	"path/filepath"
	"time"
)

// metName is the file in the state directory that tells of the cluster which has answered this host.
// A spare that has never been a member knows from it that there is a cluster, also when none of its
// members runs any more: what looks like an empty site then is not the place for a new one.
const metName = "seen.json"

// metFile is what lies there.
type metFile struct {
	ID ID        `json:"id"`
	At time.Time `json:"at"` // when it was first noted
}

// LastCluster gives the ID of the cluster that has last answered this host, or 0.
func (f *State) LastCluster() uint64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	return uint64(f.met.ID)
}

// SetLastCluster notes the cluster that has just answered this host.
func (f *State) SetLastCluster(cluster uint64, at time.Time) error {
	defer f.writes()()
	next := metFile{ID: ID(cluster), At: at}
	if err := writeJSON(f.disk, f.LastClusterPath(), next, true); err != nil {
		return err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.met = next
	return nil
}

// LastClusterPath is the file that tells of that cluster, for people.
func (f *State) LastClusterPath() string { return filepath.Join(f.state, metName) }
