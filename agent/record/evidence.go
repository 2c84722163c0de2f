// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package record

import "time"

// SnapshotEvidence is what is known about a snapshot in a store beyond its manifest.
type SnapshotEvidence struct {
	// when the snapshot's content last matched its manifest
	VerifiedAt      *time.Time `json:"verifiedAt,omitempty"`
	RestoreTestedAt *time.Time `json:"restoreTestedAt,omitempty"` // when the snapshot last passed a restore test

	ManifestSHA256 string `json:"manifestSha256,omitempty"` // hash of the stored manifest
	// Origin states whether this is the snapshot that was saved: recorded (it matches its record), exchanged (it does
	// not) or unproven (this host has no record of it).
	Origin     Origin     `json:"origin,omitempty"`
	RecordedAt *time.Time `json:"recordedAt,omitempty"` // when the hash of the manifest was recorded
	RecordedBy string     `json:"recordedBy,omitempty"` // name of the host that recorded the hash
}

// Origin describes whether an agent saved a snapshot. Integrity does not prove that an agent saved it: anyone with
// write access to the store can put a whole snapshot there, and anyone can encrypt to a recipient.
type Origin string

// The origins.
const (
	OriginRecorded  Origin = "recorded"  // the manifest has the hash that was recorded when it was saved
	OriginUnproven  Origin = "unproven"  // this host has no record of the snapshot
	OriginExchanged Origin = "exchanged" // the manifest's hash differs from the recorded one
)
