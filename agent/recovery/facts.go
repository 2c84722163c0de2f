// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

// Package recovery holds the documents with which operators recover a cluster from quorum loss: the facts of each host,
// the plan made from them, and a host's progress with it. It promises:
//
//   - It reads no disk, clock or network: the same facts always make the same plan, or the same refusal.
//   - Package policy alone decides whether a plan is made, which host is the survivor, and which hosts obey. This
//     package passes it the facts, and writes down the result.
//   - What is read from a file is bounded, strict, and carries a checksum: a truncated or edited file is refused.
package recovery

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/quorumd/quorumd/agent/record"
)

// Version is the version of the documents.
const Version = 1

// MaxSize bounds a document, in bytes.
const MaxSize = 256 << 10

// Member is an entry of the member list.
type Member struct {
	ID      record.MemberID `json:"id"`
	Name    string          `json:"name,omitempty"`
	PeerURL string          `json:"peerURL,omitempty"`
	Learner bool            `json:"learner,omitempty"`
}

// Log describes the content of a data directory.
type Log struct {
	Empty   bool            `json:"empty,omitempty"` // there is no etcd data
	Cluster record.MemberID `json:"clusterID,omitzero"`
	Member  record.MemberID `json:"memberID,omitzero"`
	Term    uint64          `json:"lastTerm"`    // of the last entry of the write-ahead log
	Index   uint64          `json:"lastIndex"`   // of the last entry
	Commit  uint64          `json:"commitIndex"` // as far as this member knows
	// Revision is the revision of the database, which may lag behind the log; 0 while an etcd has it open.
	Revision int64    `json:"revision,omitempty"`
	Database int64    `json:"databaseBytes"`
	Bytes    int64    `json:"logBytes"`
	Members  []Member `json:"members,omitempty"` // as listed in the database; empty while an etcd has it open
}

// Facts are what one host knows when the quorum is lost.
type Facts struct {
	Version int             `json:"version"`
	HostID  string          `json:"hostID"`
	Host    string          `json:"host"`
	Cluster string          `json:"cluster"` // its name
	PeerURL string          `json:"peerURL"`
	DataDir string          `json:"dataDir"`
	Boot    string          `json:"bootID"`
	Quorumd string          `json:"quorumd"`
	Etcd    string          `json:"etcd,omitempty"` // version; empty if unknown
	Taken   time.Time       `json:"taken"`
	Quorum  bool            `json:"quorum"`              // this host's agent reaches a quorum
	Lost    time.Time       `json:"quorumLost,omitzero"` // since when it does not; zero if it never did
	Log     Log             `json:"log"`
	Members []Member        `json:"members,omitempty"` // as they were last listed
	Known   record.MemberID `json:"knownClusterID,omitzero"`
	Plans   []AppliedPlan   `json:"plans,omitempty"` // plans applied on this host and not completed
	// Manifests are the hashes of the manifests of the last snapshots, as saved on this host.
	Manifests []record.Manifest `json:"manifests,omitempty"`
	Checksum  string            `json:"checksum"`
}

// AppliedPlan is a plan that was applied on a host.
type AppliedPlan struct {
	ID       string    `json:"id"`
	Survivor string    `json:"survivor"`          // its name
	GivenUp  bool      `json:"givenUp,omitempty"` // given up on this host; otherwise it is in force there
	At       time.Time `json:"at,omitzero"`       // when it was applied; zero from an older quorumd
}

// Sealed returns the facts with their checksum.
func (f Facts) Sealed() Facts {
	f.Checksum = ""
	f.Checksum = checksum(f)
	return f
}

// ReadFacts reads what quorumctl recover collect has written.
func ReadFacts(r io.Reader) (Facts, error) {
	var f Facts
	if err := decode(r, &f); err != nil {
		return f, fmt.Errorf("cannot read the facts: %w", err)
	}
	if f.Version != Version {
		return f, fmt.Errorf("cannot read the facts: they are of version %d, this quorumctl knows %d", f.Version,
			Version)
	}
	if f.Checksum != f.Sealed().Checksum {
		return f, errors.New("cannot read the facts: the checksum does not fit, the file was changed")
	}
	if len(f.Manifests) > MaxManifests {
		return f, fmt.Errorf("cannot read the facts: they list %d snapshots, the limit is %d",
			len(f.Manifests), MaxManifests)
	}
	if !fit(f.Plans) {
		return f, errors.New("cannot read the facts: no quorumd tells of earlier plans like that, the file was changed")
	}
	return f, nil
}

// MaxManifests bounds the snapshots in a host's facts.
const MaxManifests = 8

// mostPlans bounds the plans in a host's facts: the one in force and the last one.
const mostPlans = 2

// fit reports whether a host can have written this list of plans.
func fit(plans []AppliedPlan) bool {
	return len(plans) <= mostPlans && !slices.ContainsFunc(plans, func(p AppliedPlan) bool {
		strange := strings.ContainsFunc(p.Survivor, func(r rune) bool { return !unicode.IsPrint(r) || r == ',' })
		return !PlanID(p.ID) || p.Survivor == "" || strange
	})
}

// checksum returns the hash of the document as written, with an empty checksum field.
func checksum(document any) string {
	text, err := json.Marshal(document)
	if err != nil {
		return "" // none of our types can fail
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:])
}

// decode reads one document and nothing else.
func decode(r io.Reader, into any) error {
	text, err := io.ReadAll(io.LimitReader(r, MaxSize+1))
	if err != nil {
		return err
	}
	if len(text) > MaxSize {
		return fmt.Errorf("it is over %d bytes", MaxSize)
	}
	dec := json.NewDecoder(bytes.NewReader(text))
	dec.DisallowUnknownFields()
	if err := dec.Decode(into); err != nil {
		if strings.Contains(err.Error(), "unknown field") { // encoding/json has no type for that
			err = fmt.Errorf("%w: either it was changed, or a newer quorumd wrote it, whose quorumctl reads it", err)
		}
		return err
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return errors.New("there is more after the document")
	}
	return nil
}
