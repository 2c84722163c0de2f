// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package control

import (
	"context"
	"net/http"
	"regexp"
	"slices"
	"time"
)

// What can be done with snapshots.
const (
	SnapshotSave   = "save"
	SnapshotList   = "list"
	SnapshotVerify = "verify"
	SnapshotPrune  = "prune"
	SnapshotDrill  = "drill"
)

// The origins of a snapshot.
const (
	OriginRecorded  = "recorded"
	OriginUnproven  = "unproven"
	OriginExchanged = "exchanged"
)

// CodeSnapshotRunning says that another snapshot job is running.
const CodeSnapshotRunning = "SNAPSHOT_RUNNING"

// Snapshotter does jobs with snapshots of etcd's database, one at a time, when an operator asks for it. The rules of an
// Operator's methods hold for it.
type Snapshotter interface {
	// StartSnapshot starts a job, and gives it as it stands. While another is running it is refused with
	// CodeSnapshotRunning.
	StartSnapshot(ctx context.Context, req SnapshotRequest, by string) (SnapshotJob, error)
	// SnapshotJob gives the job that was started last, from memory; its Number is 0 when there was none.
	SnapshotJob() SnapshotJob
}

// SnapshotRequest asks for a job with snapshots.
type SnapshotRequest struct {
	Do     string `json:"do"`               // one of the above
	Name   string `json:"name,omitempty"`   // of the snapshot to verify or to drill with; empty for the newest
	DryRun bool   `json:"dryRun,omitempty"` // of a prune: tell only what would be removed
}

// SnapshotJob is a job with snapshots and, once it has ended, what came of it.
type SnapshotJob struct {
	APIVersion string     `json:"apiVersion"`
	Number     int        `json:"number"`
	Do         string     `json:"do,omitempty"`
	By         string     `json:"by,omitempty"`
	Started    time.Time  `json:"started,omitzero"`
	Ended      *time.Time `json:"ended,omitempty"`
	Bytes      int64      `json:"bytes"`              // done so far, of reading and of writing
	Progress   *Progress  `json:"progress,omitempty"` // while it runs and knows how much there is to do
	Serving    bool       `json:"serving,omitempty"`  // an etcd serves it: for how long nobody can tell, 10 min at most
	Error      string     `json:"error,omitempty"`

	Snapshots []Snapshot `json:"snapshots"` // all; the one that was saved, verified or proven; or the removed ones
	Strays    []string   `json:"strays"`    // objects that belong to no snapshot, or those that were removed
	Unread    []string   `json:"unread"`    // manifests that cannot be read, and why

	Served string `json:"served,omitempty"` // the version of the etcd that has served the one that was proven
}

// Snapshot is one that lies in the store.
type Snapshot struct {
	Name      string    `json:"name"`
	TakenAt   time.Time `json:"takenAt"`
	Host      string    `json:"host"`
	Member    string    `json:"member"`
	ClusterID string    `json:"clusterId"`
	Etcd      string    `json:"etcdVersion"`
	Revision  int64     `json:"revision"`
	Keys      int64     `json:"keys"`
	Hash      uint32    `json:"hash"`

	CompactRevision int64  `json:"compactRevision"` // -1 where nothing was ever compacted
	StoredSHA256    string `json:"storedSha256"`    // of what is stored

	Size       int64      `json:"size"`
	StoredSize int64      `json:"storedSize"`
	Encrypted  bool       `json:"encrypted"`
	VerifiedAt *time.Time `json:"verifiedAt,omitempty"`
	ProvenAt   *time.Time `json:"provenAt,omitempty"` // when an etcd last served it

	ManifestSHA256 string `json:"manifestSha256,omitempty"` // of its manifest as it is stored
	// Origin says whether it is the snapshot that was saved: recorded, unproven (no record of it is known) or
	// exchanged.
	Origin     string     `json:"origin,omitempty"`
	RecordedAt *time.Time `json:"recordedAt,omitempty"` // when the hash of its manifest was recorded
	RecordedBy string     `json:"recordedBy,omitempty"` // the name of the host
}

// Backup is how the last snapshots of the cluster went.
type Backup struct {
	Name     string     `json:"name,omitempty"`  // of the last one that was saved
	Saved    *time.Time `json:"saved,omitempty"` // when that was taken
	Host     string     `json:"host,omitempty"`  // by which host
	Revision int64      `json:"revision,omitempty"`
	Size     int64      `json:"size,omitempty"` // of the database, in bytes

	Failed     *time.Time `json:"failed,omitempty"` // when one was tried in vain since
	FailedHost string     `json:"failedHost,omitempty"`
	Cause      string     `json:"cause,omitempty"`

	Next string `json:"next,omitempty"` // when the next one is due, and who takes it

	Drill *RestoreTest `json:"drill,omitempty"` // how the last restores were proven
}

// RestoreTest is how the last drills of the cluster went.
type RestoreTest struct {
	Name        string     `json:"name,omitempty"`   // of the snapshot that was proven last
	Proven      *time.Time `json:"proven,omitempty"` // when
	Host        string     `json:"host,omitempty"`   // by which host
	Revision    int64      `json:"revision,omitempty"`
	Keys        int64      `json:"keys,omitempty"`
	Etcd        string     `json:"etcdVersion,omitempty"` // that has served it
	TookSeconds float64    `json:"tookSeconds,omitempty"`

	Failed     *time.Time `json:"failed,omitempty"` // when one was tried in vain since
	FailedHost string     `json:"failedHost,omitempty"`
	Cause      string     `json:"cause,omitempty"`

	Next string `json:"next,omitempty"` // when the next one is due and whose it is
}

func (j SnapshotJob) complete() SnapshotJob {
	j.APIVersion = APIVersion
	j.Snapshots, j.Strays, j.Unread = orEmpty(j.Snapshots), orEmpty(j.Strays), orEmpty(j.Unread)
	return j
}

const snapshotHint = `send {"do": "save"}; do is one of save, list, verify, prune, drill`

func (r SnapshotRequest) check() error {
	named := regexp.MustCompile(`^[A-Za-z0-9._-]{1,400}$`)
	const what = "cannot do anything with snapshots"
	switch {
	case !slices.Contains([]string{SnapshotSave, SnapshotList, SnapshotVerify, SnapshotPrune, SnapshotDrill}, r.Do):
		return badRequest(snapshotHint, "%s: do: %q is not known", what, shorten(r.Do))
	case r.Name != "" && (r.Do != SnapshotVerify && r.Do != SnapshotDrill || !named.MatchString(r.Name)):
		return badRequest("quorumctl snapshot list shows their names", "%s: name: %q is none of a snapshot to %s",
			what, shorten(r.Name), r.Do)
	case r.DryRun && r.Do != SnapshotPrune:
		return badRequest(snapshotHint, "%s: dryRun goes with prune", what)
	}
	return nil
}

func (s *Server) postSnapshot(r request) (response, error) {
	var req SnapshotRequest
	if err := decode(r.body, &req, snapshotHint); err != nil {
		return response{}, err
	}
	if err := req.check(); err != nil {
		return response{}, err
	}
	job, err := s.opt.Backend.StartSnapshot(r.ctx, req, r.by)
	if err != nil {
		return response{}, err
	}
	return response{http.StatusAccepted, job.complete()}, nil
}

func (s *Server) getSnapshot(request) (response, error) {
	return response{http.StatusOK, s.opt.Backend.SnapshotJob().complete()}, nil
}

// StartSnapshot starts a job with snapshots, and gives it as it stands.
func (c *Client) StartSnapshot(ctx context.Context, req SnapshotRequest) (SnapshotJob, error) {
	var j SnapshotJob
	err := c.do(ctx, http.MethodPost, "/v1/snapshot", req, &j)
	return j, err
}

// SnapshotJob gives the job with snapshots that was started last.
func (c *Client) SnapshotJob(ctx context.Context) (SnapshotJob, error) {
	var j SnapshotJob
	err := c.do(ctx, http.MethodGet, "/v1/snapshot", nil, &j)
	return j, err
}
