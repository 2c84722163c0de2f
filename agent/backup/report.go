// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package backup

import (
	"context"
	"encoding/json"
	"io"
	"sync"
	"sync/atomic"
	"time"
)

// Snapshot is a snapshot in a store.
type Snapshot struct {
	Manifest

	VerifiedAt      *time.Time `json:"verifiedAt,omitempty"`      // when its content last matched its manifest
	RestoreTestedAt *time.Time `json:"restoreTestedAt,omitempty"` // when it last passed a restore test

	ManifestSHA256 string     `json:"manifestSha256,omitempty"` // of the manifest as stored
	Origin         Origin     `json:"origin,omitempty"`
	RecordedAt     *time.Time `json:"recordedAt,omitempty"` // when its hash was recorded, if it was
	RecordedBy     string     `json:"recordedBy,omitempty"` // host name
}

// Outcome is the result of a job.
type Outcome struct {
	// Snapshots are, depending on the job, all snapshots in the store, the one that was saved, verified or restored, or
	// those that were removed.
	Snapshots []Snapshot `json:"snapshots,omitempty"`
	// Orphans are objects that belong to no snapshot; after a prune, those that it removed.
	Orphans []Object `json:"orphans,omitempty"`
	Unread  []string `json:"unread,omitempty"` // unreadable manifests, with the reason
	// Served is the version of the etcd that served the tested snapshot.
	Served string `json:"served,omitempty"`
	// Unprovable is the reason why this host cannot test a snapshot. It is not evidence against the snapshot.
	Unprovable string `json:"unprovable,omitempty"`
}

// report is one line of a child's output.
type report struct {
	Bytes   int64    `json:"bytes"`         // done so far
	All     int64    `json:"all,omitempty"` // total, as far as known; -1 if it cannot be known
	Error   string   `json:"error,omitempty"`
	Outcome *Outcome `json:"outcome,omitempty"`
}

// reportEvery is how often a child reports its progress.
const reportEvery = time.Second

// Meter counts the progress of a job, in bytes.
type Meter struct{ done, all atomic.Int64 }

// Did adds n to the bytes done.
func (m *Meter) Did(n int64) { m.done.Add(n) }

// Remains records how many bytes are still to be done; a negative n means unknown.
func (m *Meter) Remains(n int64) {
	if n < 0 {
		m.all.Store(-1)
		return
	}
	m.all.Store(m.done.Load() + n)
}

func (m *Meter) report() report { return report{Bytes: m.done.Load(), All: m.all.Load()} }

// ChildMain runs one job in a process of its own and reports its progress on w, until the context ends.
func ChildMain(ctx context.Context, w io.Writer, do func(context.Context, *Meter) (Outcome, error)) error {
	m := &Meter{}
	lines := json.NewEncoder(w)
	ctx, cancel := context.WithCancel(ctx)
	var telling sync.WaitGroup
	telling.Go(func() {
		ticker := time.NewTicker(reportEvery)
		defer ticker.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-ticker.C:
				if lines.Encode(m.report()) != nil {
					cancel() // the agent no longer reads the reports
				}
			}
		}
	})
	outcome, err := do(ctx, m)
	cancel()
	telling.Wait()
	last := m.report()
	if last.Outcome = &outcome; err != nil {
		last.Outcome, last.Error = nil, err.Error()
	}
	return lines.Encode(last)
}
