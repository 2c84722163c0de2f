// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package survivor

import (
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/quorumd/quorumd/agent/datadir"
	"github.com/quorumd/quorumd/agent/recovery"
)

// Swap moves the member's old data aside and puts the copy in their place. Where that was done, or was begun, it goes
// on. It gives the new names of what was moved.
func Swap(p Place, w recovery.Work, now time.Time) ([]string, error) {
	c := p.copyOf(w)
	made, err := readMade(c)
	if err != nil {
		return nil, fmt.Errorf("cannot put the copy in place: it is not whole: %w", err)
	}
	if made.Plan != w.Plan || made.Cluster != w.Cluster || made.Member != w.Member {
		return nil, fmt.Errorf("cannot put the copy in place: it is of plan %s", made.Plan)
	}
	var moved []string
	if datadir.Inspect(p.DataDir, p.WALDir).ClusterID != uint64(w.Cluster) { // else it was begun, or is done
		if moved, err = datadir.MoveAside(p.DataDir, p.WALDir, now); err != nil {
			return moved, err
		}
		if p.apart() {
			if err := os.Rename(c.log(), p.log()); err != nil {
				return moved, fmt.Errorf("cannot put the copy in place: %w", err)
			}
		}
	}
	if exists(c.member()) {
		if exists(p.member()) {
			return moved, errors.New("cannot put the copy in place: there are data where it belongs")
		}
		if err := os.Rename(c.member(), p.member()); err != nil {
			return moved, fmt.Errorf("cannot put the copy in place: %w", err)
		}
	}
	return moved, syncDir(p.DataDir)
}
