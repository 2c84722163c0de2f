// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"time"
)

// stateFiles are the few things that an agent must know after a restart and that are not in etcd. What must survive a
// reboot lies in the state directory: a request to bootstrap, to which cluster this host has ever belonged, which one
// has answered it, and as whom it was present there. The rest lies in the runtime directory, a file system in memory:
// it cannot hang, and a reboot clears it.
//
// The state directory is read once at start and written only at an operator's word, when the host meets or enters a
// cluster, and once after a boot; never in an ordinary round.
type stateFiles struct {
	state, runtime string
	disk           Files
	holder         Hold

	writing chan struct{} // holds one while somebody writes, who may hang with the disk; no reader waits for it

	mu       sync.Mutex // of the fields below, held for no longer than it takes to copy them
	request  *bootstrapRequest
	cluster  clusterFile
	seen     seenFile
	names    []string // what this agent's instances were called, and is; the newest last
	failures failuresFile
	hold     bool
	ask      askFile
	removal  removalFile
}

// bootstrapRequest is an operator's word that this host shall make a new cluster.
type bootstrapRequest struct {
	By    string    `json:"by"`
	At    time.Time `json:"at"`
	Token string    `json:"token"` // ETCD_INITIAL_CLUSTER_TOKEN of the new cluster
}

type clusterFile struct {
	ID     record64 `json:"id"`
	Member record64 `json:"member"` // the member that this host is; 0 when it is none any more
	// Standby is the learner as which it is a standby, and has not begun to join since; 0 when it is none.
	Standby record64 `json:"standby,omitzero"`
}

// failuresFile counts joins that failed in a row.
type failuresFile struct {
	BootID string        `json:"bootID"`
	Count  int           `json:"count"`
	Last   time.Duration `json:"last"` // since boot
}

// record64 is a 64 bit number that JSON readers of other languages do not round.
type record64 uint64

func (n record64) MarshalText() ([]byte, error) { return fmt.Appendf(nil, "%x", uint64(n)), nil }

func (n *record64) UnmarshalText(b []byte) error {
	_, err := fmt.Sscanf(string(b), "%x", (*uint64)(n))
	return err
}

const (
	bootstrapName = "bootstrap.json"
	clusterName   = "cluster.json"
	failuresName  = "join-failures.json"
	healthName    = "health.json"
	maxBackoff    = time.Hour
)

// Files is where the agent's own few files lie. Its methods may hang with the disk.
type Files interface {
	// MakeDir makes a directory, and those above it, if it is not there.
	MakeDir(path string) error
	// Read gives a file; the error is fs.ErrNotExist when there is none.
	Read(path string) ([]byte, error)
	// Write replaces a file so that a crash of the agent leaves the old or the new one; a durable
	// write also outlives a loss of power.
	Write(path string, data []byte, durable bool) error
	// Remove removes a file; one that is not there is fine.
	Remove(path string) error
}

// HostFiles are files in the file systems of the host.
type HostFiles struct{}

// MakeDir makes a directory that others may read.
func (HostFiles) MakeDir(path string) error { return os.MkdirAll(path, 0o755) }

// Read gives a file.
func (HostFiles) Read(path string) ([]byte, error) { return os.ReadFile(path) }

// Remove removes a file, for good: after a loss of power it is not there again.
func (HostFiles) Remove(path string) error {
	err := os.Remove(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err == nil {
		err = syncDir(filepath.Dir(path))
	}
	return err
}

func syncDir(path string) error {
	dir, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(dir.Sync(), dir.Close())
}

func openStateFiles(disk Files, state, runtime string, hold Hold) (*stateFiles, error) {
	if hold == nil {
		hold = HoldFile{disk, filepath.Join(state, holdName)}
	}
	f := &stateFiles{state: state, runtime: runtime, disk: disk, holder: hold, writing: make(chan struct{}, 1)}
	for _, dir := range []string{state, runtime} {
		if err := disk.MakeDir(dir); err != nil {
			return nil, fmt.Errorf("cannot make quorumd's own directory: %w; check paths.state and paths.runtime", err)
		}
	}
	var request bootstrapRequest
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
	if _, err := readJSON(disk, f.seenPath(), &f.seen); err != nil {
		return nil, err
	}
	if _, err := readJSON(disk, filepath.Join(state, instancesName), &f.names); err != nil {
		f.names = nil // a record of before the reboot is then another's, until it is gone
	}
	if _, err := readJSON(disk, filepath.Join(state, askName), &f.ask); err != nil {
		return nil, err
	}
	f.hold = hold.Held()
	if _, err := readJSON(disk, filepath.Join(state, removalName), &f.removal); err != nil {
		return nil, err
	}
	if _, err := readJSON(disk, filepath.Join(runtime, failuresName), &f.failures); err != nil {
		f.failures = failuresFile{} // it only shortens a wait
	}
	return f, nil
}

func readJSON(disk Files, path string, into any) (found bool, err error) {
	b, err := disk.Read(path)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err == nil {
		err = json.Unmarshal(b, into)
	}
	if err != nil {
		return false, fmt.Errorf("cannot read %s: %w; move it away if it is damaged", path, err)
	}
	return true, nil
}

func writeJSON(disk Files, path string, value any, durable bool) error {
	b, err := json.Marshal(value)
	if err != nil {
		return err
	}
	return disk.Write(path, append(b, '\n'), durable)
}

// Write replaces a file: a new one is written beside it and renamed.
func (HostFiles) Write(path string, data []byte, durable bool) error {
	temp, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+"-")
	if err != nil {
		return fmt.Errorf("cannot write %s: %w", path, err)
	}
	defer os.Remove(temp.Name()) // it is gone when all went well
	_, err = temp.Write(data)
	if err == nil && durable {
		err = temp.Sync()
	}
	err = errors.Join(err, temp.Chmod(0o644), temp.Close())
	if err == nil {
		err = os.Rename(temp.Name(), path)
	}
	if err == nil && durable {
		err = syncDir(filepath.Dir(path))
	}
	if err != nil {
		return fmt.Errorf("cannot write %s: %w", path, err)
	}
	return nil
}

// turn waits until nobody else writes, and gives what ends the caller's turn. It is a channel, because
// time stands still in a synctest bubble while anybody waits for a mutex.
func (f *stateFiles) turn() (done func()) {
	f.writing <- struct{}{}
	return func() { <-f.writing }
}

// within does what may hang with the disk beside the caller, who is answered before ctx has ended. What was
// begun goes on, and may still succeed.
func within(ctx context.Context, do func() error) error {
	done := make(chan error, 1)
	go func() { done <- do() }()
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
		return errors.New("the disk does not answer; what was asked may still be noted")
	}
}

// bootstrap gives the request that stands, or nil.
func (f *stateFiles) bootstrap() *bootstrapRequest {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.request
}

// requestBootstrap records an operator's request.
func (f *stateFiles) requestBootstrap(by string, at time.Time) error {
	defer f.turn()()
	if f.bootstrap() != nil {
		return nil
	}
	request := &bootstrapRequest{By: by, At: at, Token: "quorumd-" + rand.Text()}
	if err := writeJSON(f.disk, filepath.Join(f.state, bootstrapName), request, true); err != nil {
		return err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.request = request
	return nil
}

// endBootstrap forgets the request: the cluster stands.
func (f *stateFiles) endBootstrap() error {
	defer f.turn()()
	if err := f.disk.Remove(filepath.Join(f.state, bootstrapName)); err != nil {
		return fmt.Errorf("cannot end the bootstrap: %w", err)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.request = nil
	return nil
}

// membership gives the cluster that this host belongs to and the member that it is, or zeros.
func (f *stateFiles) membership() (cluster, member uint64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return uint64(f.cluster.ID), uint64(f.cluster.Member)
}

func (f *stateFiles) setMembership(cluster, member uint64) error {
	defer f.turn()()
	f.mu.Lock()
	next := clusterFile{ID: record64(cluster), Member: record64(member), Standby: f.cluster.Standby}
	f.mu.Unlock()
	if err := writeJSON(f.disk, filepath.Join(f.state, clusterName), next, true); err != nil {
		return err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.cluster = next
	return nil
}

// noteJoin counts a join that failed, or forgets the count after one that succeeded.
func (f *stateFiles) noteJoin(failed bool, bootID string, now time.Duration) error {
	defer f.turn()()
	next := failuresFile{BootID: bootID, Last: now}
	f.mu.Lock()
	if failed {
		next.Count = 1
		if f.failures.BootID == bootID {
			next.Count += f.failures.Count
		}
	}
	f.failures = next
	f.mu.Unlock()
	return writeJSON(f.disk, filepath.Join(f.runtime, failuresName), next, false)
}

// backoff gives how long to wait before the next join: base after the first failure, twice as
// long after each further one, at most an hour.
func (f *stateFiles) backoff(bootID string, now, base time.Duration) time.Duration {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.failures.Count == 0 || f.failures.BootID != bootID {
		return 0
	}
	wait := base
	for range f.failures.Count - 1 {
		wait = min(2*wait, maxBackoff)
	}
	return max(0, f.failures.Last+wait-now)
}
