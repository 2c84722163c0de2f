// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package hoststate

import (
	"crypto/rand"
	"fmt"
	"path/filepath"
	"slices"
)

const (
	instanceName  = "instance"       // file in the runtime directory
	instancesName = "instances.json" // file in the state directory
	instancesKept = 4                // number of boots whose host records may not have expired yet
)

// Instance returns the agent's name, which stays the same across agent restarts until the host reboots. A second agent
// with the same host ID has a different name.
func Instance(runtime string) (string, error) {
	var disk HostFiles
	if err := disk.MakeDir(runtime); err != nil {
		return "", fmt.Errorf("cannot create quorumd's directory: %w; check paths.runtime", err)
	}
	path := filepath.Join(runtime, instanceName)
	var name string
	if found, err := readJSON(disk, path, &name); err == nil && found && name != "" {
		return name, nil
	}
	name = rand.Text()
	return name, writeJSON(disk, path, name, false)
}

// Instances returns the names of this agent in the last few boots, newest last.
func (f *State) Instances() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.names
}

// NoteInstance records a name of this agent.
func (f *State) NoteInstance(name string) error {
	defer f.writes()()
	next := append(slices.Clone(f.Instances()), name)
	next = next[max(0, len(next)-instancesKept):]
	if err := writeJSON(f.disk, filepath.Join(f.state, instancesName), next, true); err != nil {
		return err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.names = next
	return nil
}
