// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package round

import (
	"time"

	"github.com/quorumd/quorumd/agent/cluster"
	"github.com/quorumd/quorumd/agent/policy"
	"github.com/quorumd/quorumd/agent/record"
)

// ClusterState is what was read from etcd, and when. A round that does not read etcd carries over the previous state.
type ClusterState struct {
	EtcdAt     time.Duration // when reading from etcd was last tried
	By         uint64        // the leader, if the records were read from it alone; 0 for a quorum read
	Reachable  bool
	Listed     bool // the member list was read even if nothing else was, or Reachable is set
	Problem    string
	Denied     bool // etcd denied permission
	Membership cluster.Membership
	Statuses   map[uint64]cluster.Status
	StatusesAt time.Duration // when the members were asked
	Answers    Answers       // set only if the member list could not be read
	Hosts      []record.Host // sorted by ID
	HostsAt    time.Duration // when all host records were read
	Counted    int           // number of host records, if they were counted
	OtherNames []string      // other cluster names with host records in this etcd
	OwnHost    *record.Host  // the record under this host's key, which another host may have written
	OwnHostAt  int64         // modification revision of OwnHost
	Op         *record.Op
	OpAt       int64 // modification revision of the operation record
	EndedAt    int64 // modification revision of the history line that ended the last operation
	Lock       *record.Lock
	LockAt     int64 // create revision of the lock key, the fencing token
	Pause      *record.Pause
	Queue      *record.Queue
	QueueAt    int64 // modification revision of the join queue
	Rollout    *record.Rollout
	RolloutAt  int64 // modification revision of the rollout
	Repairs    *record.Repairs
	RepairsAt  int64 // modification revision of the repairs
	Recovered  *record.Recovered
	// the cluster was recovered without this host, and this host's member still has a quorum of the old cluster
	OldServes   bool
	Backup      *record.Backup
	RestoreTest *record.RestoreTest
	Size        *record.Size // the size recorded by an operator's resize; nil if there is none
	SizeAt      int64        // modification revision of the size
	Permits     []Permit     // the unclaimed permits to free space, sorted by number
	Released    Released
	Retired     []Retired // sorted by host ID
	Revision    int64     // etcd's revision when the records were read
	Unreadable  []policy.Unreadable
}

// Permit is an unclaimed permit to free space.
type Permit struct {
	Number int
	At     int64 // modification revision of its key
}

// Retired is the record of a host's retirement, as last read.
type Retired struct {
	record.Retired

	Host       string // the host's ID
	At         int64  // the record's modification revision
	Unreadable bool   // the rest could not be read: only Host and At are set
}

// Policy converts the record to the policy's type.
func (r Retired) Policy() policy.Retired {
	if r.Unreadable {
		return policy.Retired{Host: r.Host, By: "an unknown operator", Reason: "the record cannot be read"}
	}
	return policy.Retired{
		Host: r.Host, PeerURL: r.PeerURL, MemberID: uint64(r.MemberID), Successor: r.Successor, By: r.By,
		Reason: r.Reason,
	}
}

// Released maps each host to the start time of its most recently released operation.
type Released map[string]time.Time

// Releases reports whether the operation that a host began at that time was released.
func (s Released) Releases(host string, began time.Time) bool {
	at, found := s[host]
	return found && at.Equal(began)
}

// InOperation reports whether a host's record shows an operation that no operator has released.
func (s Released) InOperation(h record.Host) bool {
	return !h.Turn.IsZero() && !s.Releases(h.ID, h.Turn)
}
