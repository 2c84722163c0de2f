// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package hoststate

import (
	"path/filepath"
	"slices"

	"github.com/quorumd/quorumd/agent/record"
)

// manifestsName is the file in the state directory with the manifest hashes of the last snapshots. If etcd is lost,
// only these files on the hosts prove that a snapshot in the store is one that quorumd saved.
const manifestsName = "manifests.json"

// Manifests returns this host's record of the last snapshots, newest last.
func (f *State) Manifests() []record.Manifest {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.manifests.Saved
}

// NoteManifests records more snapshots. An existing entry is never changed.
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

// openManifests reads the file manifestsName. An unreadable file counts as empty.
func (f *State) openManifests() {
	if found, err := ReadManifests(f.disk, f.state); err == nil {
		f.manifests.Saved = found
	}
}

// ReadManifests reads a host's record of the last snapshots from its state directory.
func ReadManifests(disk Files, state string) ([]record.Manifest, error) {
	var saved []record.Manifest
	if _, err := readJSON(disk, filepath.Join(state, manifestsName), &saved); err != nil {
		return nil, err
	}
	return record.Manifests{}.Add(saved...).Saved, nil
}
