// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package recovery

import (
	"errors"

	"github.com/quorumd/quorumd/agent/record"
)

// Work describes the copy to make from the survivor's data, or from a snapshot. It comes from a plan.
type Work struct {
	Plan      string          `json:"plan"`       // ID of the plan, a part of the copy's name
	Cluster   record.MemberID `json:"clusterID"`  // ID of the new cluster, which the copy gets
	Old       record.MemberID `json:"oldCluster"` // ID of the cluster that the new one replaces
	Member    record.MemberID `json:"memberID"`   // ID of the only member of the new cluster
	Term      uint64          `json:"lastTerm"`   // term of the last log entry
	Index     uint64          `json:"lastIndex"`
	Name      string          `json:"name"` // name of the member
	ClientURL string          `json:"clientURL"`
	PeerURL   string          `json:"peerURL"`
	// Snapshot, if set, replaces the survivor's data, which may then belong to any cluster or be missing.
	Snapshot *Snapshot `json:"snapshot,omitempty"`
}

// Check returns an error if work from another process is invalid.
func (w Work) Check() error {
	if !IsPlanID(w.Plan) {
		return errors.New("the plan's ID is invalid")
	}
	if w.Snapshot != nil {
		if w.Cluster == 0 || w.Member != w.Snapshot.Member || w.Cluster == w.Old {
			return errors.New("the member ID or cluster ID is missing or wrong")
		}
		return w.Snapshot.check()
	}
	if w.Cluster == 0 || w.Old == 0 || w.Member == 0 || w.Cluster == w.Old || w.Index == 0 {
		return errors.New("the member ID, cluster ID or log index is missing or wrong")
	}
	return nil
}

// ErrReading means that the log is still being read: try again.
var ErrReading = errors.New("the log is still being read")

// Copy is the progress of the copy of the survivor's data or of the snapshot.
type Copy struct {
	Plan    string // ID of the copy's plan; empty if this process has started no copy
	Running bool
	// Done is the number of bytes copied so far, and All the total; both are 0 while unknown.
	Done, All int64
	Complete  bool
	Error     string // error of the last attempt
	Result    Result // set once the copy is complete
}
