// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

// Package hoststate keeps what an agent must know after a restart and that is not in etcd: the few files on the disk of
// its host.
//
// It promises that they are written one change at a time, and that nobody reads half of a change; that no reader waits
// for the disk, since whoever writes may hang with it; and that what must outlive a reboot is on the disk before
// anybody reads it here. What follows from it is decided elsewhere.
package hoststate

import (
	"fmt"
	"path/filepath"
	"sync"

	"github.com/quorumd/quorumd/agent/record"
	"github.com/quorumd/quorumd/health"
)

// State are the few things that an agent must know after a restart and that are not in etcd. What must survive a reboot
// lies in the state directory: what was asked of this host (bootstrap, maintenance, removal, recovery, mutes), to which
// cluster it has ever belonged, which one has answered it and as whom it was present there, in which failure domains
// its members are, and whether etcd may start by itself. The rest lies in the runtime directory, a file system in
// memory: it cannot hang, and a reboot clears it.
//
// The state directory is read once at start, and written where one of these changes: a round in which nothing does
// writes nothing.
type State struct {
	state, runtime string
	disk           Files
	holder         StartGuard

	writing chan struct{} // holds one while somebody writes, who may hang with the disk; no reader waits for it

	mu        sync.Mutex // of the fields below, held for no longer than it takes to copy them
	request   *BootstrapRequest
	cluster   clusterFile
	met       metFile
	founding  BootstrapAttempt
	names     []string // what this agent's instances were called, and is; the newest last
	failures  failuresFile
	stretch   HealthyPeriod
	hold      bool
	holdKnown bool // else what hold says is worth nothing
	ask       requestFile
	removal   Removals
	recovery  Recoveries
	mutes     []health.Mute     // replaced, never changed
	domains   map[uint64]string // of the members; as above
	manifests record.Manifests  // as above
}

// Open reads what lies in the two directories, which it makes if they are not there. Whether etcd is held back is kept
// by hold; nil: by a file in the state directory.
func Open(disk Files, state, runtime string, hold StartGuard) (*State, error) {
	if hold == nil {
		hold = StartGuardFile{disk, filepath.Join(state, holdName)}
	}
	f := &State{state: state, runtime: runtime, disk: disk, holder: hold, writing: make(chan struct{}, 1)}
	for _, dir := range []string{state, runtime} {
		if err := disk.MakeDir(dir); err != nil {
			return nil, fmt.Errorf("cannot make quorumd's own directory: %w; check paths.state and paths.runtime", err)
		}
	}
	var request BootstrapRequest
	found, err := readJSON(disk, filepath.Join(state, bootstrapName), &request)
	if err != nil {
		return nil, err
	}
	if found {
		f.request = &request
	}
	if _, err := readJSON(disk, filepath.Join(state, clusterName), &f.cluster); err != nil {
		return nil, err
	}
	if _, err := readJSON(disk, f.LastClusterPath(), &f.met); err != nil {
		return nil, err
	}
	if _, err := readJSON(disk, f.BootstrapAttemptPath(), &f.founding); err != nil {
		return nil, err
	}
	if _, err := readJSON(disk, filepath.Join(state, instancesName), &f.names); err != nil {
		f.names = nil // a record of before the reboot is then another's, until it is gone
	}
	if _, err := readJSON(disk, filepath.Join(state, requestName), &f.ask); err != nil {
		return nil, err
	}
	f.hold, f.holdKnown = hold.StartGuarded()
	if _, err := readJSON(disk, filepath.Join(state, removalName), &f.removal); err != nil {
		return nil, err
	}
	if _, err := readJSON(disk, filepath.Join(state, recoveryName), &f.recovery); err != nil {
		return nil, err
	}
	f.openMutes()
	f.openDomains()
	f.openManifests()
	if _, err := readJSON(disk, filepath.Join(runtime, failuresName), &f.failures); err != nil {
		f.failures = failuresFile{} // it only shortens a wait
	}
	if _, err := readJSON(disk, filepath.Join(runtime, stretchName), &f.stretch); err != nil {
		f.stretch = HealthyPeriod{} // it begins anew
	}
	return f, nil
}

// writes waits until nobody else writes, and gives what lets the next one. It is a channel, because
// time stands still in a synctest bubble while anybody waits for a mutex.
func (f *State) writes() (done func()) {
	f.writing <- struct{}{}
	return func() { <-f.writing }
}
