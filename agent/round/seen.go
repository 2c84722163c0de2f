// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package round

import (
	"time"

	"github.com/quorumd/quorumd/agent/cluster"
	"github.com/quorumd/quorumd/agent/policy"
	"github.com/quorumd/quorumd/agent/record"
)

// ClusterState is what was read from etcd, and when. A round that does not read it carries over the previous state.
type ClusterState struct {
	EtcdAt      time.Duration // when etcd was read
	By          uint64        // the leader, if only it was asked for the records; 0 for a quorum read
	Reachable   bool
	Listed      bool // at least the member list was read
	Problem     string
	Denied      bool // etcd refuses for lack of permission
	Membership  cluster.Membership
	Statuses    map[uint64]cluster.Status
	StatusesAt  time.Duration // when the members were asked
	Answers     Answers       // while there is no quorum
	Hosts       []record.Host // by ID
	HostsAt     time.Duration // when all of them were read
	Counted     int           // their number, if they were counted
	OtherNames  []string      // other cluster names with host records in this etcd
	OwnHost     *record.Host  // the record under our own key, whichever host wrote it
	OwnHostAt   int64         // and its modification revision
	Op          *record.Op
	OpAt        int64 // its modification revision
	EndedAt     int64 // modification revision of the line that ended the last one
	Lock        *record.Lock
	LockAt      int64 // its create revision: the token
	Pause       *record.Pause
	Queue       *record.Queue
	QueueAt     int64 // its modification revision
	Rollout     *record.Rollout
	RolloutAt   int64 // its modification revision
	Repairs     *record.Repairs
	RepairsAt   int64 // its modification revision
	Recovered   *record.Recovered
	OldServes   bool // a late host's own member still serves the old cluster, with a quorum
	Backup      *record.Backup
	RestoreTest *record.RestoreTest
	Released    Released
	Revision    int64 // of the store when the records were read
	Unreadable  []policy.Unreadable
}

// Released maps every host to the start of its last operation that an operator has released.
type Released map[string]time.Time

// Releases reports whether the operation of a host that began at that time was released.
func (s Released) Releases(host string, began time.Time) bool {
	at, found := s[host]
	return found && at.Equal(began)
}

// InOperation reports whether a host publishes an operation that was not released.
func (s Released) InOperation(h record.Host) bool {
	return !h.Turn.IsZero() && !s.Releases(h.ID, h.Turn)
}
