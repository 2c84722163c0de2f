// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package backup

import "github.com/quorumd/quorumd/agent/record"

// Snapshot is a snapshot in a store.
type Snapshot struct {
	Manifest

	record.SnapshotEvidence
}

// Outcome is the result of a job.
type Outcome struct {
	// Snapshots depend on the job: all snapshots in the store, the snapshot that was saved, verified or restored, or
	// the removed snapshots.
	Snapshots []Snapshot `json:"snapshots,omitempty"`
	// Orphans are objects that belong to no snapshot. After a prune, they are the orphans that the prune removed.
	Orphans []Object `json:"orphans,omitempty"`
	Unread  []string `json:"unread,omitempty"` // unreadable manifests, with the reason
	// Served is the version of the etcd that served the tested snapshot.
	Served string `json:"served,omitempty"`
	// Unprovable is the reason why this host cannot test a snapshot. It is not evidence against the snapshot.
	Unprovable string `json:"unprovable,omitempty"`
}
