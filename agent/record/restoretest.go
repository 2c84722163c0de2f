// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package record

import "time"

// RestoreTest is how the last drills went: a snapshot was restored and served by an etcd of its own. It has no lease.
type RestoreTest struct {
	Version int `json:"version"`

	Name     string    `json:"name,omitempty"` // of the snapshot that was proven last
	Proven   time.Time `json:"proven,omitzero"`
	Host     string    `json:"host,omitempty"` // the name of the host whose agent has proven it
	Revision int64     `json:"revision,omitempty"`
	Keys     int64     `json:"keys,omitempty"`
	Etcd     string    `json:"etcd,omitempty"` // the version that has served it
	Took     float64   `json:"took,omitempty"` // seconds, with reading it from the store

	Failed     time.Time `json:"failed,omitzero"` // when one was tried in vain since
	FailedHost string    `json:"failedHost,omitempty"`
	Cause      string    `json:"cause,omitempty" bound:"text"`

	Extra Extra `json:"-"`
}

// What a host says of whether it can prove snapshots; empty when it cannot.
const (
	DrillReady  = "ready"
	DrillSealed = "sealed"  // but for the key to decrypt them with
	DrillNoRoom = "no-room" // but for free bytes
)

// RestoreTest is the key of how the last drills went.
func (k Keys) RestoreTest() string { return k.prefix + "restores" }

// RestoreTesting is the key of who is proving a snapshot. What lies there is a [Saving].
func (k Keys) RestoreTesting() string { return k.prefix + "restore-now" }
