// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package control

import (
	"time"

	"github.com/quorumd/quorumd/agent/policy"
	"github.com/quorumd/quorumd/agent/record"
)

// Cluster is the etcd cluster as last observed by this host.
type Cluster struct {
	Name string `json:"name"`
	// hexadecimal, as etcdctl prints it; empty if no cluster has been observed
	ID         string   `json:"id,omitempty"`
	Reachable  bool     `json:"reachable"` // a quorum has just answered
	AgeSeconds *float64 `json:"ageSeconds,omitempty"`
	Error      string   `json:"error,omitempty"` // why the cluster is not reachable
	Version    string   `json:"version,omitempty"`
	Voters     int      `json:"voters"`
	// Target is the size of the cluster: the number of voters to which an operator has resized it, otherwise the
	// configured number.
	Target   int   `json:"target"`
	Size     *Size `json:"size,omitempty"` // absent if no operator has resized the cluster
	Standbys int   `json:"standbys"`
	// how many more voters may fail without losing quorum; below 0 if there is no quorum now
	FaultTolerance int `json:"faultTolerance"`
	// a sentence that names the failure domain whose loss would cost the quorum; absent if there is none
	DomainLoss string   `json:"domainLoss,omitempty"`
	Members    []Member `json:"members"`
}

// Member is one etcd member.
type Member struct {
	ID         string      `json:"id"` // hexadecimal, as etcdctl prints it
	Name       string      `json:"name"`
	ClientURLs []string    `json:"clientURLs,omitempty"`
	PeerURLs   []string    `json:"peerURLs,omitempty"`
	Role       policy.Role `json:"role"` // voter or learner
	Leader     bool        `json:"leader"`
	Live       bool        `json:"live"`
	// DownSeconds is how long this host has observed that the member is not live. It is absent if the member is live or
	// the cluster is not reachable.
	DownSeconds *float64 `json:"downSeconds,omitempty"`

	Version string  `json:"version,omitempty"`
	Lag     *uint64 `json:"lag,omitempty"` // raft entries behind the leader; absent if unknown
	DBSize  int64   `json:"dbSizeBytes,omitempty"`
}

// HostRecord is a host's record as last published by its agent.
type HostRecord struct {
	ID         string      `json:"id"`
	Name       string      `json:"name"`
	Domain     string      `json:"domain,omitempty"`
	Role       policy.Role `json:"role"`
	Health     string      `json:"health"`
	HealthText string      `json:"healthText,omitempty"`
	// P99 of the fsync probe's WAL-like writes, rounded up; absent if not measured
	P99Seconds  float64  `json:"p99Seconds,omitempty"`
	Mode        string   `json:"mode"`
	Version     string   `json:"version"`
	EtcdVersion string   `json:"etcdVersion,omitempty"`
	MemberID    string   `json:"memberID,omitempty"`
	AgeSeconds  *float64 `json:"ageSeconds,omitempty"` // seconds since the host's record was last read
	// SilentSeconds is how long the host may have been down although its record has not expired: its member does not
	// answer or, without a member, the record's renewals are overdue. The record's lease bounds it.
	SilentSeconds *float64 `json:"silentSeconds,omitempty"`
	// Former reports that the cluster does not list the member named in the host's record, for example because the host
	// died before a recovery. The record is outdated, so role and health are unknown.
	Former  bool   `json:"former,omitempty"`
	Retired string `json:"retired,omitempty"` // if the host is retired: leaves, left or unreadable
	Waiting string `json:"waiting,omitempty"` // code of the reason why the host waits
	// position in the join queue, from 1; absent if the host votes or is not ready to join
	Rank int `json:"rank,omitempty"`
	// how the host reaches the members that its agent has probed
	Sees []record.Reachability `json:"sees,omitempty"`
}

// Bounds of the hosts in a status. An ordinary host takes about 400 bytes, and a host with the largest permitted record
// up to 16 KiB.
const (
	MaxHosts     = 2000
	MaxHostBytes = 2 << 20
)

// Omitted counts the hosts that have a record in etcd and are not listed, because a status is bounded in hosts and
// bytes. The host that answers, the hosts of the lock and the operation, the members, and hosts that are not OK have
// priority, in this order.
type Omitted struct {
	Hosts int `json:"hosts"`
	NotOK int `json:"notOK"` // how many of the omitted hosts have a health state other than OK
}

// Lock is the lock that permits one host to change the cluster.
type Lock struct {
	Holder          string  `json:"holder,omitempty"` // host ID; empty if the lock is free
	HolderName      string  `json:"holderName,omitempty"`
	Mine            bool    `json:"mine"`
	ValidForSeconds float64 `json:"validForSeconds,omitempty"` // only if this host holds the lock
}

// Op is the operation in flight.
type Op struct {
	Kind     string `json:"kind"` // join, replace, cycle, remove or leave
	Host     string `json:"host"` // the host that is operated on, or that received the request to remove a member
	HostName string `json:"hostName"`
	// voter or standby for a join, the member's name for a removal
	Target   string    `json:"target,omitempty"`
	Phase    string    `json:"phase"`
	MemberID string    `json:"memberID,omitempty"`
	Started  time.Time `json:"started"`
	Deadline time.Time `json:"deadline,omitzero"`
	Reason   string    `json:"reason,omitempty"`
	By       string    `json:"by,omitempty"`
	Progress string    `json:"progress,omitempty"` // such as "applied 8000 of 9000 entries"; only on the joining host
	// Interruptible means that the host calls the work off and returns if the cluster needs its vote.
	Interruptible bool `json:"interruptible,omitempty"`
	Orphaned      bool `json:"orphaned"` // the operation's host no longer holds the lock
}

// Pause is a record that stops all steps of all hosts. It always expires.
type Pause struct {
	By     string    `json:"by"`
	Reason string    `json:"reason"`
	Since  time.Time `json:"since"`
	Until  time.Time `json:"until"`
}
