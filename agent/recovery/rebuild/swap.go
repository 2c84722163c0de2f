// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package rebuild

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/quorumd/quorumd/agent/datadir"
	"github.com/quorumd/quorumd/agent/recovery"
	"github.com/quorumd/quorumd/disk/atomicfile"
)

// Swap moves the member's old data aside and puts the copy in its place. It continues where an interrupted swap
// stopped. It returns the new names of the moved data.
func Swap(p Place, w recovery.Work, now time.Time) ([]string, error) {
	c := p.copyPlace(w)
	result, err := readResult(c)
	if err != nil {
		return nil, fmt.Errorf("cannot put the copy in place: it is not complete: %w", err)
	}
	if result.Plan != w.Plan || result.Cluster != w.Cluster || result.Member != w.Member {
		return nil, fmt.Errorf("cannot put the copy in place: it was made for plan %s", result.Plan)
	}
	var moved []string
	if datadir.Inspect(p.DataDir, p.WALDir).ClusterID != uint64(w.Cluster) { // the old data is still in place
		if !exists(c.member()) || !exists(c.log()) {
			return nil, errors.New("cannot put the copy in place: a part of it is missing")
		}
		if moved, err = datadir.MoveAside(p.DataDir, p.WALDir, now); err != nil {
			return moved, err
		}
		if p.separateLog() {
			if err := placeLog(p, c); err != nil {
				return moved, fmt.Errorf("cannot put the copy in place: %w", err)
			}
		}
	}
	if exists(c.member()) {
		if exists(p.member()) {
			return moved, fmt.Errorf("cannot put the copy in place: %s already exists", p.member())
		}
		if err := os.Rename(c.member(), p.member()); err != nil {
			return moved, fmt.Errorf("cannot put the copy in place: %w", err)
		}
	}
	if !exists(p.member()) || !exists(p.log()) {
		return moved, errors.New("cannot put the copy in place: a part of it is missing")
	}
	return moved, atomicfile.SyncDir(p.DataDir)
}

// placeLog puts a separate log, which may be on a different file system, in place. Swap calls it after it has moved the
// old data aside and before it puts the rest of the copy in place, so that the next attempt can determine how far this
// one got.
func placeLog(p, c Place) error {
	if err := atomicfile.SyncDir(p.DataDir); err != nil {
		return err
	}
	if err := os.Rename(c.log(), p.log()); err != nil {
		return err
	}
	return atomicfile.SyncDir(filepath.Dir(p.log()))
}
