// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

// Package hoststate stores the state that an agent needs after a restart and cannot read from etcd, in a few files on
// its host's disk. Other packages decide how to use this state. It promises:
//
//   - No other package writes these files.
//   - Changes are written one at a time, and no reader gets a half-written change.
//   - No reader waits for the disk, where a write may hang, except in Health and DiskHistory.
//   - State that must survive a reboot is on disk before readers get it.
package hoststate

import (
	"fmt"
	"path/filepath"
	"sync"

	"github.com/quorumd/quorumd/agent/record"
	"github.com/quorumd/quorumd/health"
)

// State is the state that an agent needs after a restart and cannot read from etcd. The part that must survive a reboot
// is in the state directory: this host's requests (bootstrap, maintenance, removal, recovery, mutes), the bootstrap
// attempt that it is committed to, the cluster and member it last belonged to, the cluster that last answered it, the
// names of the agent's instances, the failure domains of the members, the permanent learners, the manifest hashes of
// the last snapshots, the start guard, and the usual write times of the disk. Leadership transfers are in memory only.
// The rest is in the runtime directory. That directory is in memory, so access to it cannot hang, and a reboot clears
// it.
//
// The state directory is read once at start and written only when something changes.
type State struct {
	state, runtime string
	disk           Files
	guard          StartGuard

	writing chan struct{} // holds one value during a write, which may hang with the disk; readers do not wait for it

	mu          sync.Mutex // guards the fields below; held only while they are copied
	request     *BootstrapRequest
	cluster     clusterFile
	lastCluster lastClusterFile
	attempt     BootstrapAttempt
	names       []string // the names of this agent's instances, newest last
	failures    failuresFile
	period      HealthyPeriod
	guarded     bool
	guardKnown  bool // if false, the value of guarded means nothing
	ask         requestFile
	removal     Removals
	transfers   Transfers // kept in memory only
	recovery    Recoveries
	mutes       []health.Mute     // replaced, never changed
	domains     map[uint64]string // failure domains of the members' hosts; replaced, never changed
	learners    map[uint64]int    // permanent learners with their limits; replaced, never changed
	manifests   record.Manifests  // replaced, never changed
}

// Open reads the two directories, and creates them unless they exist. hold is the start guard; nil means a file in the
// state directory.
func Open(disk Files, state, runtime string, hold StartGuard) (*State, error) {
	if hold == nil {
		hold = StartGuardFile{disk, filepath.Join(state, startGuardName)}
	}
	f := &State{state: state, runtime: runtime, disk: disk, guard: hold, writing: make(chan struct{}, 1)}
	for _, dir := range []string{state, runtime} {
		if err := disk.MakeDir(dir); err != nil {
			return nil, fmt.Errorf("cannot create quorumd's directory: %w; check paths.state and paths.runtime", err)
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
	if _, err := readJSON(disk, f.LastClusterPath(), &f.lastCluster); err != nil {
		return nil, err
	}
	if _, err := readJSON(disk, f.BootstrapAttemptPath(), &f.attempt); err != nil {
		return nil, err
	}
	if _, err := readJSON(disk, filepath.Join(state, instancesName), &f.names); err != nil {
		f.names = nil // until it expires, a host record from before the reboot then counts as a different agent's
	}
	if _, err := readJSON(disk, filepath.Join(state, requestName), &f.ask); err != nil {
		return nil, err
	}
	f.guarded, f.guardKnown = hold.StartGuarded()
	if _, err := readJSON(disk, filepath.Join(state, removalName), &f.removal); err != nil {
		return nil, err
	}
	if _, err := readJSON(disk, filepath.Join(state, recoveryName), &f.recovery); err != nil {
		return nil, err
	}
	f.openMutes()
	f.openDomains()
	f.openLearners()
	f.openManifests()
	if _, err := readJSON(disk, filepath.Join(runtime, failuresName), &f.failures); err != nil {
		f.failures = failuresFile{} // the only effect is a shorter wait
	}
	if _, err := readJSON(disk, filepath.Join(runtime, healthyPeriodName), &f.period); err != nil {
		f.period = HealthyPeriod{} // the period restarts
	}
	return f, nil
}

// writes waits for the current write to end and returns a function that allows the next one. It uses a channel because
// in a synctest bubble, time does not advance while a goroutine waits for a mutex.
func (f *State) writes() (done func()) {
	f.writing <- struct{}{}
	return func() { <-f.writing }
}
