// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

// Package recovery holds the documents with which operators recover a cluster from quorum loss: the facts of each host,
// the plan made from them, and the progress of a host that carries it out. It promises:
//
//   - It reads no disk, clock or network, so the same facts and the same choice always lead to the same plan, or to the
//     same refusal.
//   - Package policy alone decides whether a plan is made, which host is the survivor, and which hosts accept the plan.
//     This package passes the facts to it, and records the result.
//   - Reading a file is bounded and strict, and verifies its checksum: a truncated or edited file is refused.
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
	Term    uint64          `json:"lastTerm"`    // term of the last entry in the write-ahead log
	Index   uint64          `json:"lastIndex"`   // index of the last entry in the write-ahead log
	Commit  uint64          `json:"commitIndex"` // highest committed entry that this member recorded
	// Revision is the revision of the database, which may lag behind the log; 0 while an etcd has it open.
	Revision int64 `json:"revision,omitempty"`
	Database int64 `json:"databaseBytes"`
	Bytes    int64 `json:"logBytes"`
	// Members are the members listed in the database; empty while an etcd has the database open.
	Members []Member `json:"members,omitempty"`
}

// Facts describe one host after quorum loss.
type Facts struct {
	Version int       `json:"version"`
	HostID  string    `json:"hostID"`
	Host    string    `json:"host"`
	Cluster string    `json:"cluster"` // name of the cluster
	PeerURL string    `json:"peerURL"`
	DataDir string    `json:"dataDir"`
	Boot    string    `json:"bootID"`
	Quorumd string    `json:"quorumd"`
	Etcd    string    `json:"etcd,omitempty"` // version of etcd; empty if unknown
	Taken   time.Time `json:"taken"`
	Quorum  bool      `json:"quorum"` // this host's agent reaches a quorum
	// when the agent last reached a quorum; zero if it reaches one now, or has reached none since it started
	Lost    time.Time       `json:"quorumLost,omitzero"`
	Log     Log             `json:"log"`
	Members []Member        `json:"members,omitempty"` // the last member list that the agent read
	Known   record.MemberID `json:"knownClusterID,omitzero"`
	Plans   []AppliedPlan   `json:"plans,omitempty"` // plans applied on this host and not completed
	// Manifests are the hashes of the last snapshots' manifests, as recorded on this host.
	Manifests []record.Manifest `json:"manifests,omitempty"`
	Checksum  string            `json:"checksum"`
}

// AppliedPlan is a plan that was applied on a host.
type AppliedPlan struct {
	ID       string    `json:"id"`
	Survivor string    `json:"survivor"`          // name of the survivor
	GivenUp  bool      `json:"givenUp,omitempty"` // the plan was abandoned on this host; otherwise the plan is in force
	At       time.Time `json:"at"`                // when the plan was applied
}

// Sealed returns the facts with their checksum.
func (f Facts) Sealed() Facts {
	f.Checksum = ""
	f.Checksum = checksum(f)
	return f
}

// ReadFacts reads the output of quorumctl recover collect.
func ReadFacts(r io.Reader) (Facts, error) {
	var f Facts
	if err := decode(r, &f); err != nil {
		return f, fmt.Errorf("cannot read the facts: %w", err)
	}
	if f.Version != Version {
		return f, fmt.Errorf("cannot read the facts: they have version %d, but this quorumctl supports %d",
			f.Version, Version)
	}
	if f.Checksum != f.Sealed().Checksum {
		return f, errors.New("cannot read the facts: checksum mismatch: the file was changed")
	}
	if len(f.Manifests) > MaxManifests {
		return f, fmt.Errorf("cannot read the facts: they list %d snapshots; the limit is %d",
			len(f.Manifests), MaxManifests)
	}
	if !validPlans(f.Plans) {
		return f, errors.New("cannot read the facts: the list of earlier plans is invalid, so the file was changed")
	}
	return f, nil
}

// MaxManifests bounds the snapshots in a host's facts.
const MaxManifests = 8

// maxPlans bounds the plans in a host's facts: the one in force and the one before it.
const maxPlans = 2

// validPlans reports whether an agent could have written this list of plans.
func validPlans(plans []AppliedPlan) bool {
	return len(plans) <= maxPlans && !slices.ContainsFunc(plans, func(p AppliedPlan) bool {
		strange := strings.ContainsFunc(p.Survivor, func(r rune) bool { return !unicode.IsPrint(r) || r == ',' })
		return !IsPlanID(p.ID) || p.Survivor == "" || strange || p.At.IsZero()
	})
}

// checksum returns the hash of the document's JSON text. The document's checksum field must be empty.
func checksum(document any) string {
	text, err := json.Marshal(document)
	if err != nil {
		return "" // cannot happen: every document type can be encoded
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:])
}

// decode reads one document. It returns an error if anything follows the document.
func decode(r io.Reader, into any) error {
	text, err := io.ReadAll(io.LimitReader(r, MaxSize+1))
	if err != nil {
		return err
	}
	if len(text) > MaxSize {
		return fmt.Errorf("it is larger than %d bytes", MaxSize)
	}
	dec := json.NewDecoder(bytes.NewReader(text))
	dec.DisallowUnknownFields()
	if err := dec.Decode(into); err != nil {
		if strings.Contains(err.Error(), "unknown field") { // encoding/json has no error type for an unknown field
			err = fmt.Errorf("%w: the file was changed, or a newer quorumd wrote it (use its quorumctl)", err)
		}
		return err
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return errors.New("unexpected data after the document")
	}
	return nil
}
