// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package backup

import (
	"errors"
	"fmt"
	"time"

	"github.com/quorumd/quorumd/agent/record"
)

// ErrReplaced means that the snapshot in the store is not the one that was saved under its name.
var ErrReplaced = errors.New("the snapshot was replaced in the store")

// Origin describes whether an agent saved this snapshot. Integrity does not prove it: anyone with write access to the
// store can put a whole snapshot there, and anyone can encrypt to a recipient.
type Origin string

// The origins.
const (
	OriginRecorded  Origin = "recorded"  // the manifest has the hash that was recorded when it was saved
	OriginUnproven  Origin = "unproven"  // this host has no record of the snapshot
	OriginExchanged Origin = "exchanged" // the manifest's hash differs from the recorded one
)

// Evidence holds the hashes of manifests that were recorded when the snapshots were saved.
type Evidence []record.Manifest

// Origin compares the manifest with the evidence, and returns the record of the snapshot of that name, if any.
func (e Evidence) Origin(m Manifest) (Origin, record.Manifest) {
	for _, one := range e {
		switch {
		case one.Name != m.Name:
		case one.SHA256 == m.SHA256:
			return OriginRecorded, one
		default:
			return OriginExchanged, one
		}
	}
	return OriginUnproven, record.Manifest{}
}

// Refuse returns an [ErrReplaced] if the snapshot is not the one that was saved.
func (e Evidence) Refuse(m Manifest) error {
	origin, recorded := e.Origin(m)
	if origin != OriginExchanged {
		return nil
	}
	return fmt.Errorf(
		"cannot use the snapshot %s: %w: the SHA-256 of its manifest is %s, but %s recorded %s at %s → choose "+
			"another one from quorumctl snapshot list; find out who can write to the store",
		m.Name,
		ErrReplaced,
		m.SHA256,
		recorded.Host,
		recorded.SHA256,
		recorded.Saved.UTC().Format(time.RFC3339),
	)
}

// Seen returns the snapshot with its origin.
func (e Evidence) Seen(s Snapshot) Snapshot {
	origin, recorded := e.Origin(s.Manifest)
	s.ManifestSHA256, s.Origin = s.SHA256, origin
	if origin != OriginUnproven {
		s.RecordedAt, s.RecordedBy = &recorded.Saved, recorded.Host
	}
	return s
}
