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
}

// Outcome is what came of a job.
type Outcome struct {
	Snapshots []Snapshot `json:"snapshots,omitempty"` // all, the one that was saved or verified, or those that were removed
	Strays    []Object   `json:"strays,omitempty"`    // what belongs to no snapshot; after a prune those that were removed
	Unread    []string   `json:"unread,omitempty"`    // manifests that cannot be read, and why
}

// report is one line that a child prints.
type report struct {
	Bytes   int64    `json:"bytes"` // done so far
	Error   string   `json:"error,omitempty"`
	Outcome *Outcome `json:"outcome,omitempty"`
}

// reportEvery is how often a child tells how far it is.
const reportEvery = time.Second

// Child does one job in a process of its own and tells of it on w, until the context ends.
func Child(ctx context.Context, w io.Writer, do func(context.Context, func(int64)) (Outcome, error)) error {
	var bytes atomic.Int64
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
				if lines.Encode(report{Bytes: bytes.Load()}) != nil {
					cancel() // nobody listens any more
				}
			}
		}
	})
	outcome, err := do(ctx, func(n int64) { bytes.Add(n) })
	cancel()
	telling.Wait()
	last := report{Bytes: bytes.Load(), Outcome: &outcome}
	if err != nil {
		last = report{Bytes: bytes.Load(), Error: err.Error()}
	}
	return lines.Encode(last)
}
