// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package recovery

import (
	"errors"

	"github.com/quorumd/quorumd/agent/record"
)

// Work is what is to be made of the survivor's data. It comes from a plan.
type Work struct {
	Plan      string          `json:"plan"`       // its ID, which names the copy
	Cluster   record.MemberID `json:"clusterID"`  // that the copy gets
	Old       record.MemberID `json:"oldCluster"` // that the data are of,
	Member    record.MemberID `json:"memberID"`   // as this member,
	Term      uint64          `json:"lastTerm"`   // with this last entry
	Index     uint64          `json:"lastIndex"`
	Name      string          `json:"name"` // of the member
	ClientURL string          `json:"clientURL"`
	PeerURL   string          `json:"peerURL"`
	// Snapshot is what is used instead of the data, which may be anybody's or none then.
	Snapshot *Snapshot `json:"snapshot,omitempty"`
}

// Check tells what is wrong with work that came from elsewhere.
func (w Work) Check() error {
	if !PlanID(w.Plan) {
		return errors.New("the plan's ID is none")
	}
	if w.Snapshot != nil {
		if w.Cluster == 0 || w.Member != w.Snapshot.Member || w.Cluster == w.Old {
			return errors.New("the work names no member and cluster")
		}
		return w.Snapshot.check()
	}
	if w.Cluster == 0 || w.Old == 0 || w.Member == 0 || w.Cluster == w.Old || w.Index == 0 {
		return errors.New("the work names no member and clusters")
	}
	return nil
}

// ErrReading tells that the log is still being read: ask again.
var ErrReading = errors.New("the log is still being read")

// Copy is how far the copy of the survivor's data is.
type Copy struct {
	Plan string // of which; empty when this process has begun none
	Runs bool
	// Done are the bytes that were copied so far, and All those that there are; both 0 while nobody knows.
	Done, All int64
	Whole     bool
	Error     string // with which the last try has ended
	Made      Made   // once it is whole
}
