// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package record

import "time"

// Backup is the result of the last snapshot jobs. It has no lease.
type Backup struct {
	Version int `json:"version"`

	Name     string    `json:"name,omitempty"` // name of the newest saved snapshot
	Saved    time.Time `json:"saved,omitzero"`
	Host     string    `json:"host,omitempty"` // the name of the host whose agent saved the snapshot
	Revision int64     `json:"revision,omitempty"`
	Size     int64     `json:"size,omitempty"` // size of the database, in bytes
	// ManifestSHA256 is the SHA-256 of the snapshot's manifest as stored, in hexadecimal.
	ManifestSHA256 string `json:"manifestSha256,omitempty"`

	Failed     time.Time `json:"failed,omitzero"` // when the last attempt failed; absent if a snapshot was saved since
	FailedHost string    `json:"failedHost,omitempty"`
	Cause      string    `json:"cause,omitempty" bound:"text"`

	Extra Extra `json:"-"`
}

// Saving is a host's claim to a snapshot job, or to a restore test. Its lease frees the claim if the agent dies.
type Saving struct {
	Version int       `json:"version"`
	Host    string    `json:"host"` // name of the host
	Since   time.Time `json:"since"`
	Extra   Extra     `json:"-"`
}

// Backup returns the key of the result of the last snapshot jobs.
func (k Keys) Backup() string { return k.prefix + "snapshots" }

// Saving returns the key of the claim to save a snapshot.
func (k Keys) Saving() string { return k.prefix + "snapshot-now" }
