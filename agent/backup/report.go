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

// Snapshot is one that lies in a store.
type Snapshot struct {
	Manifest

	VerifiedAt *time.Time `json:"verifiedAt,omitempty"` // when it was last opened and held against its manifest
	ProvenAt   *time.Time `json:"provenAt,omitempty"`   // when an etcd last served it and was held against it

	ManifestSHA256 string     `json:"manifestSha256,omitempty"` // of the manifest as it is stored
	Origin         Origin     `json:"origin,omitempty"`
	RecordedAt     *time.Time `json:"recordedAt,omitempty"` // when its hash was, if it was
	RecordedBy     string     `json:"recordedBy,omitempty"` // the host
}

// Outcome is what came of a job.
type Outcome struct {
	// all, the one that was saved, verified or proven, or those that were removed
	Snapshots []Snapshot `json:"snapshots,omitempty"`
	// what belongs to no snapshot; after a prune those that were removed
	Strays []Object `json:"strays,omitempty"`
	Unread []string `json:"unread,omitempty"` // manifests that cannot be read, and why
	// Served is the version of the etcd that has served the one that was proven.
	Served string `json:"served,omitempty"`
	// Unprovable tells why this host can prove nothing of a snapshot, which says nothing against it.
	Unprovable string `json:"unprovable,omitempty"`
}

// report is one line that a child prints.
type report struct {
	Bytes   int64    `json:"bytes"`         // done so far
	All     int64    `json:"all,omitempty"` // that are to be done, as far as is known; -1 when nobody can know
	Error   string   `json:"error,omitempty"`
	Outcome *Outcome `json:"outcome,omitempty"`
}

// reportEvery is how often a child tells how far it is.
const reportEvery = time.Second

// Meter is told how far a job is, in bytes.
type Meter struct{ done, all atomic.Int64 }

// Did counts so many more that were done.
func (m *Meter) Did(n int64) { m.done.Add(n) }

// Remains notes how many are still to be done; with less than 0, that nobody knows.
func (m *Meter) Remains(n int64) {
	if n < 0 {
		m.all.Store(-1)
		return
	}
	m.all.Store(m.done.Load() + n)
}

func (m *Meter) report() report { return report{Bytes: m.done.Load(), All: m.all.Load()} }

// ChildMain does one job in a process of its own and tells of it on w, until the context ends.
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
					cancel() // nobody listens any more
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
