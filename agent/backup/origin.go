// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package backup

import (
	"errors"
	"fmt"
	"time"

	"github.com/quorumd/quorumd/agent/record"
)

// ErrReplaced means that a snapshot in the store is not the one that was saved under its name.
var ErrReplaced = errors.New("the snapshot was replaced in the store")

// Origin says whether a snapshot is the one that an agent saved. That it is whole does not prove it: whoever can write
// to the store can put a whole snapshot there, and anybody can encrypt to a recipient.
type Origin string

// The origins.
const (
	OriginRecorded  Origin = "recorded"  // its manifest has the hash that was recorded when it was saved
	OriginUnproven  Origin = "unproven"  // no record of the snapshot is known here
	OriginExchanged Origin = "exchanged" // its manifest has another hash
)

// Evidence are the hashes of manifests that were recorded when the snapshots were saved.
type Evidence []record.Manifest

// Origin compares the manifest with the evidence, and returns what was recorded of a snapshot of that name, if
// anything.
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

// Refuse returns an [ErrExchanged] if the snapshot is not the one that was saved.
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

// Seen returns a snapshot with its origin.
func (e Evidence) Seen(s Snapshot) Snapshot {
	origin, recorded := e.Origin(s.Manifest)
	s.ManifestSHA256, s.Origin = s.SHA256, origin
	if origin != OriginUnproven {
		s.RecordedAt, s.RecordedBy = &recorded.Saved, recorded.Host
	}
	return s
}
