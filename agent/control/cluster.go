// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package control

import "time"

// Cluster is the etcd cluster as this host last saw it.
type Cluster struct {
	Name string `json:"name"`
	// hexadecimal, as etcdctl prints it; empty while there is no cluster
	ID         string   `json:"id,omitempty"`
	Reachable  bool     `json:"reachable"` // a quorum has just answered
	AgeSeconds *float64 `json:"ageSeconds,omitempty"`
	Error      string   `json:"error,omitempty"` // why it is not reachable
	Version    string   `json:"version,omitempty"`
	Voters     int      `json:"voters"`
	Target     int      `json:"target"` // voters wanted
	Standbys   int      `json:"standbys"`
	// voters that may fail from here on with a quorum left; below 0 when there is none now
	FailureTolerance int      `json:"failureTolerance"`
	Members          []Member `json:"members"`
}

// Member is one etcd member.
type Member struct {
	ID         string   `json:"id"` // hexadecimal, as etcdctl prints it
	Name       string   `json:"name"`
	ClientURLs []string `json:"clientURLs,omitempty"`
	PeerURLs   []string `json:"peerURLs,omitempty"`
	Role       Role     `json:"role"` // voter or learner
	Leader     bool     `json:"leader"`
	Live       bool     `json:"live"`
	// DownSeconds is for how long, as this host has seen it, it has not been live; absent when it is, and where nobody
	// could be asked.
	DownSeconds *float64 `json:"downSeconds,omitempty"`

	Version string  `json:"version,omitempty"`
	Lag     *uint64 `json:"lag,omitempty"` // raft entries behind the leader; absent when not known
	DBSize  int64   `json:"dbSizeBytes,omitempty"`
}

// HostRecord is what another host, or this one, last said of itself.
type HostRecord struct {
	ID         string `json:"id"`
	Name       string `json:"name"`
	Domain     string `json:"domain,omitempty"`
	Role       Role   `json:"role"`
	Health     string `json:"health"`
	HealthText string `json:"healthText,omitempty"`
	// of its WAL lane, at most: it is rounded up. Absent when nothing was measured
	P99Seconds  float64  `json:"p99Seconds,omitempty"`
	Mode        string   `json:"mode"`
	Version     string   `json:"version"`
	EtcdVersion string   `json:"etcdVersion,omitempty"`
	MemberID    string   `json:"memberID,omitempty"`
	AgeSeconds  *float64 `json:"ageSeconds,omitempty"` // since its record was read
	// SilentSeconds is for how long the host may have been gone although its record has not expired: its member does
	// not answer or, without a member, it has missed renewals of its record. Bounded by the lease of the record.
	SilentSeconds *float64 `json:"silentSeconds,omitempty"`
	// Former reports that the cluster does not list the member that the host's record names, as of hosts that were lost
	// before a recovery: what the record says is of before, so role and health are unknown.
	Former  bool   `json:"former,omitempty"`
	Waiting string `json:"waiting,omitempty"` // the code of the reason it waits for
	// its place among those that are ready to vote, from 1 on: who goes first; absent of one that votes or is not ready
	Rank int `json:"rank,omitempty"`
	// how it reaches the other members; one that it has not looked at is not in it
	Sees []Sight `json:"sees,omitempty"`
}

// Bounds of the hosts that a status lists. An ordinary host takes about 400 bytes; a record as large as records may be
// makes a row of 12 KiB.
const (
	MaxHosts     = 2000
	MaxHostBytes = 2 << 20
)

// Omitted counts the hosts that have a record in etcd and are not listed, since a status is bounded in hosts and bytes.
// The host that answers, the members, and those that are not OK are listed before others.
type Omitted struct {
	Hosts int `json:"hosts"`
	NotOK int `json:"notOK"` // of these, whose health state is not OK
}

// Sight is how a host reaches a member.
type Sight struct {
	MemberID string `json:"memberID"` // hexadecimal, as etcdctl prints it
	// How the port for peers is found, and the one for clients: answers, refused, unreachable, silent or large-lost;
	// absent when it is not known.
	Peer   string `json:"peer,omitempty"`
	Client string `json:"client,omitempty"`
	// to connect, at most: it is rounded up. Absent when no connection was made
	RTTSeconds float64 `json:"rttSeconds,omitempty"`
	// Lost: neither port has taken a connection in the last looks. Said at once; the states wait for more looks.
	Lost bool `json:"lost,omitempty"`
}

// Lock says who may act on the cluster at this moment.
type Lock struct {
	Holder          string  `json:"holder,omitempty"` // host ID, empty when the lock is free
	HolderName      string  `json:"holderName,omitempty"`
	Mine            bool    `json:"mine"`
	ValidForSeconds float64 `json:"validForSeconds,omitempty"` // only when it is mine
}

// Op is the one operation in flight.
type Op struct {
	Kind     string `json:"kind"` // join, cycle or remove
	Host     string `json:"host"` // the host it is done to
	HostName string `json:"hostName"`
	// what a join leads to, voter or standby; of a removal the name of the member
	Target   string    `json:"target,omitempty"`
	Phase    string    `json:"phase"`
	MemberID string    `json:"memberID,omitempty"`
	Started  time.Time `json:"started"`
	Deadline time.Time `json:"deadline,omitzero"`
	Reason   string    `json:"reason,omitempty"`
	By       string    `json:"by,omitempty"`
	Progress string    `json:"progress,omitempty"` // a clause for people, such as "applied 8000 of 9000 entries"
	Orphaned bool      `json:"orphaned"`           // its host no longer holds the lock
}

// Pause stops every step of every host. It always has an end.
type Pause struct {
	By     string    `json:"by"`
	Reason string    `json:"reason"`
	Since  time.Time `json:"since"`
	Until  time.Time `json:"until"`
}
