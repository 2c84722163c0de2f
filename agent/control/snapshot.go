// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package control

import (
	"context"
	"net/http"
	"time"

	"github.com/quorumd/quorumd/agent/policy"
	"github.com/quorumd/quorumd/agent/record"
)

// The kinds of snapshot jobs.
const (
	SnapshotSave        = "save"
	SnapshotList        = "list"
	SnapshotVerify      = "verify"
	SnapshotPrune       = "prune"
	SnapshotRestoreTest = "restoreTest"
)

// CodeSnapshotRunning means that another snapshot job is running.
const CodeSnapshotRunning = "SNAPSHOT_RUNNING"

// SnapshotRequest requests a snapshot job.
type SnapshotRequest struct {
	Do     string `json:"do"`               // save, list, verify, prune or restoreTest
	Name   string `json:"name,omitempty"`   // snapshot to verify or to test; empty for the newest
	DryRun bool   `json:"dryRun,omitempty"` // for a prune: only list the snapshots that it would remove
}

// SnapshotJob is a snapshot job and, after its end, its result.
type SnapshotJob struct {
	APIVersion string           `json:"apiVersion"`
	Number     int              `json:"number"`
	Do         string           `json:"do,omitempty"`
	By         string           `json:"by,omitempty"`
	Started    time.Time        `json:"started,omitzero"`
	Ended      *time.Time       `json:"ended,omitempty"`
	Bytes      int64            `json:"bytes"`              // progress so far, in bytes
	Progress   *policy.Progress `json:"progress,omitempty"` // set while the job runs, if the total is known
	// an etcd is reading the snapshot of a restore test, for at most 10 min; the time left is unknown
	Serving bool   `json:"serving,omitempty"`
	Error   string `json:"error,omitempty"`

	Snapshots []Snapshot `json:"snapshots"` // snapshots that were listed, saved, verified, tested or removed
	Orphans   []string   `json:"orphans"`   // objects that belong to no snapshot, listed or removed
	Unread    []string   `json:"unread"`    // manifests that cannot be read, and why

	Served string `json:"served,omitempty"` // version of the etcd that served the tested snapshot
}

// Snapshot is a snapshot in the store.
type Snapshot struct {
	Name      string    `json:"name"`
	TakenAt   time.Time `json:"takenAt"`
	Host      string    `json:"host"`
	Member    string    `json:"member"`
	ClusterID string    `json:"clusterID"`
	Etcd      string    `json:"etcdVersion"`
	Revision  int64     `json:"revision"`
	Keys      int64     `json:"keys"`
	Hash      uint32    `json:"hash"`

	CompactRevision int64  `json:"compactRevision"` // -1 if nothing was ever compacted
	StoredSHA256    string `json:"storedSha256"`    // hash of the stored data

	Size       int64 `json:"size"`
	StoredSize int64 `json:"storedSize"`
	Encrypted  bool  `json:"encrypted"`

	record.SnapshotEvidence
}

// Backup holds the results of the cluster's last snapshots.
type Backup struct {
	Name     string     `json:"name,omitempty"`  // name of the last saved snapshot
	Saved    *time.Time `json:"saved,omitempty"` // when the last saved snapshot was taken
	Host     string     `json:"host,omitempty"`  // the host that saved the last snapshot
	Revision int64      `json:"revision,omitempty"`
	Size     int64      `json:"size,omitempty"` // size of the database, in bytes

	Failed     *time.Time `json:"failed,omitempty"` // the last failed attempt since the last saved snapshot
	FailedHost string     `json:"failedHost,omitempty"`
	Cause      string     `json:"cause,omitempty"`

	Next string `json:"next,omitempty"` // when the next snapshot is due and which host takes it, or why none is taken

	RestoreTest *RestoreTest `json:"restoreTest,omitempty"` // results of the last restore tests
}

// RestoreTest holds the results of the cluster's last restore tests.
type RestoreTest struct {
	Name          string     `json:"name,omitempty"`          // name of the last successfully tested snapshot
	RestoreTested *time.Time `json:"restoreTested,omitempty"` // time of the last successful test
	Host          string     `json:"host,omitempty"`          // the host that ran the last successful test
	Revision      int64      `json:"revision,omitempty"`
	Keys          int64      `json:"keys,omitempty"`
	Etcd          string     `json:"etcdVersion,omitempty"` // version of the etcd that served the snapshot
	TookSeconds   float64    `json:"tookSeconds,omitempty"`

	Failed     *time.Time `json:"failed,omitempty"` // the last failed attempt since the last successful test
	FailedHost string     `json:"failedHost,omitempty"`
	Cause      string     `json:"cause,omitempty"`

	Next string `json:"next,omitempty"` // when the next test is due and which host runs it, or why none is run
}

// StartSnapshot starts a snapshot job and returns its state.
func (c *Client) StartSnapshot(ctx context.Context, req SnapshotRequest) (SnapshotJob, error) {
	var j SnapshotJob
	err := c.do(ctx, http.MethodPost, "/v1/snapshot", req, &j)
	return j, err
}

// SnapshotJob returns the last snapshot job.
func (c *Client) SnapshotJob(ctx context.Context) (SnapshotJob, error) {
	var j SnapshotJob
	err := c.do(ctx, http.MethodGet, "/v1/snapshot", nil, &j)
	return j, err
}
