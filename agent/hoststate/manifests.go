// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package hoststate

import (
	"path/filepath"
	"slices"

	"github.com/quorumd/quorumd/agent/record"
)

// manifestsName is the file in the state directory with the hashes of the manifests of the last snapshots: when etcd is
// lost, the hosts' copies are the only evidence that a snapshot in the store is one that was saved.
const manifestsName = "manifests.json"

// Manifests returns what this host remembers of the last snapshots, the newest at the end.
func (f *State) Manifests() []record.Manifest {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.manifests.Saved
}

// NoteManifests remembers more snapshots. What this host remembers of a snapshot already is never changed.
func (f *State) NoteManifests(more ...record.Manifest) error {
	defer f.writes()()
	f.mu.Lock()
	before := f.manifests
	f.mu.Unlock()
	next := before.Add(more...)
	if slices.Equal(next.Saved, before.Saved) {
		return nil
	}
	if err := writeJSON(f.disk, filepath.Join(f.state, manifestsName), next.Saved, true); err != nil {
		return err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.manifests = next
	return nil
}

// openManifests reads the file. One that cannot be read is evidence of nothing.
func (f *State) openManifests() {
	if found, err := ReadManifests(f.disk, f.state); err == nil {
		f.manifests.Saved = found
	}
}

// ReadManifests reads what a host remembers of the last snapshots from its state directory.
func ReadManifests(disk Files, state string) ([]record.Manifest, error) {
	var saved []record.Manifest
	if _, err := readJSON(disk, filepath.Join(state, manifestsName), &saved); err != nil {
		return nil, err
	}
	return record.Manifests{}.Add(saved...).Saved, nil
}
