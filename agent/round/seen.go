// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package round

import (
	"time"

	"github.com/quorumd/quorumd/agent/cluster"
	"github.com/quorumd/quorumd/agent/policy"
	"github.com/quorumd/quorumd/agent/record"
)

// ClusterState is what was read from etcd, and when. A round that does not ask carries over what the round
// before had.
type ClusterState struct {
	EtcdAt     time.Duration // when etcd was asked
	By         uint64        // the member that leads, and alone was asked for the records; 0 when a quorum was
	Reachable  bool
	Listed     bool // at least the member list was read
	Problem    string
	Denied     bool // etcd's users and roles stand against it
	Membership cluster.Membership
	Statuses   map[uint64]cluster.Status
	StatusesAt time.Duration // when the members were asked
	Answers    Answers       // while there is no quorum
	Hosts      []record.Host // by ID
	HostsAt    time.Duration // when all of them were read
	Counted    int           // how many there are, if they were counted
	OtherNames []string      // cluster names under which other hosts have records in this etcd
	OwnHost    *record.Host  // our own key's record, whoever wrote it
	OwnHostAt  int64         // and its modification revision
	Op         *record.Op
	OpAt       int64 // its modification revision
	EndedAt    int64 // modification revision of the line with which the last one ended
	Lock       *record.Lock
	LockAt     int64 // its create revision: the token
	Pause      *record.Pause
	Queue      *record.Queue
	QueueAt    int64 // its modification revision
	Rollout    *record.Rollout
	RolloutAt  int64 // its modification revision
	Repairs    *record.Repairs
	RepairsAt  int64 // its modification revision
	Recovered  *record.Recovered
	OldServes  bool // late to that: this host's own member still serves the old cluster, with a quorum behind it
	Backup     *record.Backup
	Drill      *record.RestoreTest
	Released   Released
	Revision   int64 // of the store when the records were read
	Unreadable []policy.Unreadable
}

// Released are the operations that persons have released: for every host when the last of them began.
type Released map[string]time.Time

// Releases tells whether the operation of a host that began at that time was released.
func (s Released) Releases(host string, began time.Time) bool {
	at, found := s[host]
	return found && at.Equal(began)
}

// InOperation tells whether a host says that it is in its turn, and nobody has released it.
func (s Released) InOperation(h record.Host) bool {
	return !h.Turn.IsZero() && !s.Releases(h.ID, h.Turn)
}
