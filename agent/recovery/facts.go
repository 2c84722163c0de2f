// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

// Package recovery holds the documents with which people bring a cluster back that has lost its majority for good: the
// facts of each host, the plan that is made of them, and how far a host is with it. It promises:
//
//   - Nothing here reads a disk, a clock or a network: the same facts always make the same plan, or the same refusal.
//   - Whether a plan is made, who goes on alone, and who obeys it is decided by package policy alone; what is here
//     tells it what the facts say, and writes down what came of it.
//   - What is read from a file is bounded, strict, and carries a checksum: half of it, or one that was edited, is
//     refused.
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

// Version is that of the documents.
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

// Log is what a data directory says of itself.
type Log struct {
	Empty   bool            `json:"empty,omitempty"` // nothing of etcd lies there
	Cluster record.MemberID `json:"clusterID,omitzero"`
	Member  record.MemberID `json:"memberID,omitzero"`
	Term    uint64          `json:"lastTerm"`    // of the last entry of the write-ahead log
	Index   uint64          `json:"lastIndex"`   // of the last entry
	Commit  uint64          `json:"commitIndex"` // as far as this member knows
	// Revision is that of the database, which may lie behind the log; 0 while an etcd has it open.
	Revision int64    `json:"revision,omitempty"`
	Database int64    `json:"databaseBytes"`
	Bytes    int64    `json:"logBytes"`
	Members  []Member `json:"members,omitempty"` // as the database lists them; none while an etcd has it open
}

// Facts are what one host knows when a majority is lost.
type Facts struct {
	Version int             `json:"version"`
	HostID  string          `json:"hostID"`
	Host    string          `json:"host"`
	Cluster string          `json:"cluster"` // its name
	PeerURL string          `json:"peerURL"`
	DataDir string          `json:"dataDir"`
	Boot    string          `json:"bootID"`
	Quorumd string          `json:"quorumd"`
	Etcd    string          `json:"etcd,omitempty"` // version; empty when unknown
	Taken   time.Time       `json:"taken"`
	Quorum  bool            `json:"quorum"`              // this host's agent reaches a quorum
	Lost    time.Time       `json:"quorumLost,omitzero"` // since when it has not; zero when it never did
	Log     Log             `json:"log"`
	Members []Member        `json:"members,omitempty"` // as they were last listed
	Known   record.MemberID `json:"knownClusterID,omitzero"`
	Plans   []PlanTold      `json:"plans,omitempty"` // that this host was told and has not carried out to the end
	// Manifests are the hashes of the manifests of the last snapshots that this host remembers.
	Manifests []record.Manifest `json:"manifests,omitempty"`
	Checksum  string            `json:"checksum"`
}

// PlanTold is a plan that was applied on a host.
type PlanTold struct {
	ID       string    `json:"id"`
	Survivor string    `json:"survivor"`          // its name
	GivenUp  bool      `json:"givenUp,omitempty"` // on the host whose facts these are; else it is in force there
	At       time.Time `json:"at,omitzero"`       // when the host was told; zero from an older quorumd
}

// Sealed gives the facts with their checksum.
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

// MaxManifests bounds the snapshots of which a host tells.
const MaxManifests = 8

// mostPlans is how many a host can tell of: the one in force and the last one.
const mostPlans = 2

// fit tells whether a host can have told of these plans.
func fit(plans []PlanTold) bool {
	return len(plans) <= mostPlans && !slices.ContainsFunc(plans, func(p PlanTold) bool {
		strange := strings.ContainsFunc(p.Survivor, func(r rune) bool { return !unicode.IsPrint(r) || r == ',' })
		return !PlanID(p.ID) || p.Survivor == "" || strange
	})
}

// checksum is over the document as it is written, its own field empty.
func checksum(document any) string {
	text, err := json.Marshal(document)
	if err != nil {
		return "" // no field of ours can fail
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
