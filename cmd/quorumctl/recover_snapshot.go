// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/quorumd/quorumd/agent/control"
	"github.com/quorumd/quorumd/agent/display"
	"github.com/quorumd/quorumd/agent/record"
	"github.com/quorumd/quorumd/agent/recovery"
)

// newestSnapshot is the name that selects the newest snapshot in the store.
const newestSnapshot = "newest"

// findSnapshot returns the snapshot to restore, from the store of this host or from a file on this host. In the store,
// it refuses a snapshot that was replaced, and unless unproven is set, one without a recorded hash.
func (a *app) findSnapshot(ctx context.Context, name string, facts []recovery.Facts, unproven bool) (
	*recovery.Snapshot, error,
) {
	const what = "plan the recovery"
	if strings.ContainsRune(name, filepath.Separator) {
		if dir := hiddenDir(name); dir != "" && sandboxed() {
			return nil, usage("move the file to a directory that etcd's user can enter, such as /srv, and run: "+
				"chown etcd: FILE",
				"cannot %s: %s is in %s, which is hidden from quorumd's service", what, name, dir)
		}
		s, err := fileSnapshot(ctx, name)
		if err != nil {
			return nil, usage("use a readable file from etcdctl snapshot save", "cannot %s: %s: %v", what, name,
				err)
		}
		s.Origin = "unproven, because it is a file and not in the store"
		return s, nil
	}
	started, err := a.client().StartSnapshot(ctx, control.SnapshotRequest{Do: control.SnapshotList})
	if err != nil {
		return nil, cannot(what, err)
	}
	job, err := a.followSnapshot(ctx, started)
	switch {
	case err != nil:
		return nil, err
	case job.Error != "":
		return nil, jobFailure(what, job.Error)
	}
	for _, s := range job.Snapshots {
		if name == s.Name || name == newestSnapshot {
			origin, err := originOf(s, facts, unproven)
			if err != nil {
				return nil, err
			}
			found, err := storedSnapshot(s)
			if err == nil {
				found.Origin = origin + newerMissing(s, job.Snapshots, facts)
			}
			return found, err
		}
	}
	return nil, usage("quorumctl snapshot list; for a file, use a path with a /",
		"cannot %s: there is no snapshot %q in the store", what, name)
}

// originOf compares a snapshot in the store with the hashes that this host and the others recorded when it was saved.
// It returns the evidence that the snapshot was not replaced, or an error. If unproven is set, it accepts a snapshot
// without evidence.
func originOf(s control.Snapshot, facts []recovery.Facts, unproven bool) (string, error) {
	replaced := func(by string, at time.Time) error {
		return &failure{
			code: exitFault, message: fmt.Sprintf("cannot plan the recovery: the snapshot %s was replaced in the "+
				"store: its manifest does not match the hash recorded by %s at %s", s.Name, by, display.Timestamp(at)),
			hint: "choose a different snapshot (quorumctl snapshot list), and find out who can write to the store",
		}
	}
	origin := ""
	switch s.Origin {
	case record.OriginExchanged:
		return "", replaced(s.RecordedBy, *cmp.Or(s.RecordedAt, &time.Time{}))
	case record.OriginRecorded:
		origin = fmt.Sprintf("its manifest matches the hash recorded at %s by %s",
			display.Timestamp(*cmp.Or(s.RecordedAt, &time.Time{})), s.RecordedBy)
	}
	for _, f := range facts {
		for _, m := range f.Manifests {
			switch {
			case m.Name != s.Name:
			case m.SHA256 != s.ManifestSHA256:
				return "", replaced(m.Host, m.Saved)
			case origin == "":
				origin = fmt.Sprintf("its manifest matches the hash recorded at %s by %s, according to the record on "+
					"%s",
					display.Timestamp(m.Saved), m.Host, f.Host)
			}
		}
	}
	switch {
	case origin != "":
		return origin, nil
	case unproven:
		return "unproven, because no host has a record of it; accepted with --unproven-origin", nil
	}
	return "", usage("collect the facts of more hosts, or add --unproven-origin if you trust everyone who can "+
		"write to the store",
		"cannot plan the recovery: no host has a record of the snapshot %s, so its origin is unproven; encryption "+
			"does not prove it", s.Name)
}

// newerMissing describes the newest recorded snapshot that the store lacks, if it is newer than the chosen one.
func newerMissing(s control.Snapshot, stored []control.Snapshot, facts []recovery.Facts) string {
	newest := record.Manifest{Saved: s.TakenAt}
	for _, f := range facts {
		for _, m := range f.Manifests {
			if m.Saved.After(newest.Saved) &&
				!slices.ContainsFunc(stored, func(s control.Snapshot) bool { return s.Name == m.Name }) {
				newest = m
			}
		}
	}
	if newest.Name == "" {
		return ""
	}
	return fmt.Sprintf("; the newer snapshot %s was saved at %s but is missing from the store", newest.Name,
		display.Timestamp(newest.Saved))
}

// hiddenDir returns which of the directories that the sandbox of quorumd's services hides (ProtectHome=, PrivateTmp=)
// contains the file, or "".
func hiddenDir(name string) string {
	path, err := filepath.Abs(name)
	if err != nil {
		return ""
	}
	if real, err := filepath.EvalSymlinks(path); err == nil {
		path = real
	}
	for _, dir := range []string{"/root", "/home", "/run/user", "/tmp", "/var/tmp"} {
		if strings.HasPrefix(path, dir+"/") {
			return dir
		}
	}
	return ""
}

// sandboxed reports whether quorumd runs as installed by its package, with a separate service that accesses etcd's
// files.
func sandboxed() bool {
	_, err := os.Stat("/run/quorumd-runas.sock")
	return err == nil
}

func storedSnapshot(s control.Snapshot) (*recovery.Snapshot, error) {
	id, err := strconv.ParseUint(s.ClusterID, 16, 64)
	if err != nil {
		return nil, cannot("plan the recovery", fmt.Errorf("%.30q is not a cluster ID", s.ClusterID))
	}
	return &recovery.Snapshot{
		Name: s.Name, Taken: s.TakenAt, Cluster: record.MemberID(id), Contents: record.Contents{
			Revision: s.Revision, CompactRevision: s.CompactRevision, Hash: s.Hash, Keys: s.Keys,
		}, Size: s.Size, SHA256: s.StoredSHA256, Member: randomID(),
	}, nil
}

// fileSnapshot inspects a snapshot file. The survivor reads the file again and compares it with the result.
func fileSnapshot(ctx context.Context, name string) (*recovery.Snapshot, error) {
	path, err := filepath.Abs(name)
	if err != nil {
		return nil, err
	}
	file, err := openDatabase(path)
	if err != nil {
		return nil, err
	}
	defer file.Close() // the file was only read, so no data can be lost
	found, err := inspectFile(ctx, file)
	return &recovery.Snapshot{
		File: path, Contents: found.Contents, Size: found.Size, SHA256: found.SHA256, Member: randomID(),
	}, err
}

// randomID returns an ID for a new member or cluster, never 0.
func randomID() record.MemberID {
	var random [8]byte
	_, _ = rand.Read(random[:]) // rand.Read never fails
	return record.MemberID(binary.BigEndian.Uint64(random[:]) | 1)
}
