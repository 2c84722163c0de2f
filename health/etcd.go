// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package health

import "time"

// EtcdReading is what the local etcd reports about itself, at one moment. The zero value means unknown. Counters count
// from the start of that etcd.
type EtcdReading struct {
	// At is when etcd was asked, on the clock of [Input].
	At time.Duration
	// Member is the ID of the member that answered; 0 if it reported none.
	Member uint64
	// WALFsync is how long etcd's writes to its log took to become durable, and BackendCommit how long its writes to
	// the database took.
	WALFsync, BackendCommit Histogram
	// HasLeader is 1 if the member has a leader, and 0 otherwise. LeaderChanges counts the leader changes that it has
	// observed.
	HasLeader, LeaderChanges Figure
	// ProposalsFailed counts writes that failed to reach consensus.
	ProposalsFailed Figure
	// SlowApplies counts requests that took over 100 ms to apply; HeartbeatFailures counts heartbeats that the member
	// sent late as the leader, because its disk or CPU was too slow.
	SlowApplies, HeartbeatFailures Figure
	// DBSize is the size of the database file in bytes, DBInUse the part that is in use, and Quota its limit.
	DBSize, DBInUse, Quota Figure

	// Alarms is how many errors the local member's status lists, not counting a missing leader. Errors are their texts.
	Alarms Figure
	Errors []string
	// OwnSize is the size of the local member's database according to its status, and SmallestSize that of the smallest
	// database of the other voters, in bytes.
	OwnSize, SmallestSize Figure
	// Version is the version of the local member, and FarthestRTT the longest response time of another voter, in
	// seconds.
	Version     string
	FarthestRTT Figure
	// Peers are the other members to which etcd is or was connected, by ID; nil if it reports none, or an impossible
	// value.
	Peers map[uint64]Peer
	// Process is the local etcd's process.
	Process EtcdProcess
	// Settings are the flags of the local etcd.
	Settings EtcdSettings
	// Requests is how the local member answers requests of the agent.
	Requests RequestsReading
	// Hashes is the last comparison of the voters' data.
	Hashes HashesReading
	// Certificates are the certificates that connections to etcd depend on, as last read.
	Certificates CertificateReading
}

// EtcdProcess is the process of the local etcd.
type EtcdProcess struct {
	Known   bool
	Runs    bool
	Started time.Duration // when the process was started, on the clock of [Input], if it runs
}

// startedSince reports whether the process was started after the given time, or no process runs. It returns false if
// that is unknown.
func (p EtcdProcess) startedSince(moment time.Duration) bool {
	return p.Known && (!p.Runs || p.Started > moment)
}

// Peer is what the local etcd reports about another member. etcd's number of connections is not used, because it
// includes connections to a machine for up to three minutes after the machine lost power.
type Peer struct {
	Received float64 // bytes received from the member so far
	Active   bool    // etcd has established a connection to the member, and uses it
}

// etcdSource describes where etcd's figures come from, for display.
const etcdSource = " of the local etcd's /metrics"
