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

// Evidence holds the hashes of manifests that were recorded when the snapshots were saved.
type Evidence []record.Manifest

// Origin compares the manifest with the evidence. It returns the result, and the recorded manifest of the same name, if
// any.
func (e Evidence) Origin(m Manifest) (record.Origin, record.Manifest) {
	for _, one := range e {
		switch {
		case one.Name != m.Name:
		case one.SHA256 == m.SHA256:
			return record.OriginRecorded, one
		default:
			return record.OriginExchanged, one
		}
	}
	return record.OriginUnproven, record.Manifest{}
}

// Refuse returns an [ErrReplaced] if the evidence holds a different manifest under the snapshot's name.
func (e Evidence) Refuse(m Manifest) error {
	origin, recorded := e.Origin(m)
	if origin != record.OriginExchanged {
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
	if origin != record.OriginUnproven {
		s.RecordedAt, s.RecordedBy = &recorded.Saved, recorded.Host
	}
	return s
}
