// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"context"
	"path/filepath"
	"time"
)

// seenName is the file in the state directory that tells of the cluster which has answered this host.
// A spare that has never been a member knows from it that there is a cluster, also when none of its
// members runs any more: what looks like an empty site then is not the place for a new one.
const seenName = "seen.json"

// seenFile is what lies there.
type seenFile struct {
	ID record64  `json:"id"`
	At time.Time `json:"at"` // when it was first noted
}

// noteSeen records the cluster that has just answered, beside the loop: the disk may hang. A cluster
// that this host is making itself, at an operator's word, is none that was there before.
func (a *Agent) noteSeen(ctx context.Context, r *round) {
	_, ours := r.membership.ByPeerURL(r.view.Self.PeerURL)
	id := r.membership.ClusterID
	if !r.listed || r.etcdAt != r.at || id == a.files.lastSeen() || (r.boot != nil && ours) {
		return
	}
	a.seeing.Refresh(ctx, a.opt.Now, noteEvery, lookTimeout, func(context.Context) (struct{}, error) {
		err := a.files.setSeen(seenFile{ID: record64(id), At: r.wall})
		if err != nil {
			a.log.Error("cluster not recorded as seen", "error", err)
		}
		return struct{}{}, err
	})
}

// lastSeen gives the ID of the cluster that has last answered this host, or 0.
func (f *stateFiles) lastSeen() uint64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	return uint64(f.seen.ID)
}

func (f *stateFiles) setSeen(next seenFile) error {
	defer f.turn()()
	if err := writeJSON(f.disk, f.seenPath(), next, true); err != nil {
		return err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.seen = next
	return nil
}

func (f *stateFiles) seenPath() string { return filepath.Join(f.state, seenName) }
