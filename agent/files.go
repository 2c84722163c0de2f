// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package agent

import (
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

// stateFiles are the few things that an agent must know after a restart and that are not in
// etcd. What must survive a reboot lies in the state directory: a request to bootstrap, and to
// which cluster this host has ever belonged. The rest lies in the runtime directory, a file
// system in memory: it cannot hang, and a reboot clears it.
//
// The state directory is read once at start and written only at an operator's word or when the
// host enters a cluster, never in an ordinary round.
type stateFiles struct {
	state, runtime string

	writing sync.Mutex // one writer at a time; it may hang with the disk, and no reader waits for it

	mu       sync.Mutex // of the fields below, held for no longer than it takes to copy them
	request  *bootstrapRequest
	cluster  clusterFile
	failures failuresFile
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
	instanceName  = "instance"
	maxBackoff    = time.Hour
)

func openStateFiles(state, runtime string) (*stateFiles, error) {
	f := &stateFiles{state: state, runtime: runtime}
	for _, dir := range []string{state, runtime} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return nil, fmt.Errorf("cannot make quorumd's own directory: %w; check paths.state and paths.runtime", err)
		}
	}
	var request bootstrapRequest
	found, err := readJSON(filepath.Join(state, bootstrapName), &request)
	if err != nil {
		return nil, err
	}
	if found {
		f.request = &request
	}
	if _, err := readJSON(filepath.Join(state, clusterName), &f.cluster); err != nil {
		return nil, err
	}
	if _, err := readJSON(filepath.Join(runtime, failuresName), &f.failures); err != nil {
		f.failures = failuresFile{} // it only shortens a wait
	}
	return f, nil
}

func readJSON(path string, into any) (found bool, err error) {
	b, err := os.ReadFile(path)
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

// writeFile replaces a file so that a crash leaves the old or the new one.
func writeFile(path string, value any, durable bool) error {
	b, err := json.Marshal(value)
	if err != nil {
		return err
	}
	temp, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+"-")
	if err != nil {
		return fmt.Errorf("cannot write %s: %w", path, err)
	}
	defer os.Remove(temp.Name()) // it is gone when all went well
	_, err = temp.Write(append(b, '\n'))
	if err == nil && durable {
		err = temp.Sync()
	}
	err = errors.Join(err, temp.Chmod(0o644), temp.Close())
	if err == nil {
		err = os.Rename(temp.Name(), path)
	}
	if err != nil {
		return fmt.Errorf("cannot write %s: %w", path, err)
	}
	return nil
}

// bootstrap gives the request that stands, or nil.
func (f *stateFiles) bootstrap() *bootstrapRequest {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.request
}

// requestBootstrap records an operator's request.
func (f *stateFiles) requestBootstrap(by string, at time.Time) error {
	f.writing.Lock()
	defer f.writing.Unlock()
	if f.bootstrap() != nil {
		return nil
	}
	request := &bootstrapRequest{By: by, At: at, Token: "quorumd-" + rand.Text()}
	if err := writeFile(filepath.Join(f.state, bootstrapName), request, true); err != nil {
		return err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.request = request
	return nil
}

// endBootstrap forgets the request: the cluster stands.
func (f *stateFiles) endBootstrap() error {
	f.writing.Lock()
	defer f.writing.Unlock()
	if err := os.Remove(filepath.Join(f.state, bootstrapName)); err != nil && !errors.Is(err, fs.ErrNotExist) {
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
	f.writing.Lock()
	defer f.writing.Unlock()
	next := clusterFile{ID: record64(cluster), Member: record64(member)}
	if err := writeFile(filepath.Join(f.state, clusterName), next, true); err != nil {
		return err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.cluster = next
	return nil
}

// noteJoin counts a join that failed, or forgets the count after one that succeeded.
func (f *stateFiles) noteJoin(failed bool, bootID string, now time.Duration) error {
	f.writing.Lock()
	defer f.writing.Unlock()
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
	return writeFile(filepath.Join(f.runtime, failuresName), next, false)
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

// Instance gives the name that all processes of this agent share until the host reboots. Another
// agent with the same host ID has another one.
func Instance(runtime string) (string, error) {
	if err := os.MkdirAll(runtime, 0o755); err != nil {
		return "", fmt.Errorf("cannot make quorumd's own directory: %w; check paths.runtime", err)
	}
	path := filepath.Join(runtime, instanceName)
	var name string
	if found, err := readJSON(path, &name); err == nil && found && name != "" {
		return name, nil
	}
	name = rand.Text()
	return name, writeFile(path, name, false)
}
