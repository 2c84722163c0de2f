// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package health

import "time"

// EtcdReading is what the local etcd reports about itself, at one moment. The zero value means unknown. Counters count
// from the start of that etcd.
type EtcdReading struct {
	// At is when it was asked, on the clock of [Input].
	At time.Duration
	// Member is the ID of the member that answered; 0 if it reported none.
	Member uint64
	// WALFsync is how long its writes to the log took to become durable, and BackendCommit how long its writes to the
	// database took.
	WALFsync, BackendCommit Histogram
	// HasLeader is 1 while it knows a leader; LeaderChanges counts the changes it has seen.
	HasLeader, LeaderChanges Figure
	// ProposalsFailed counts writes that failed to reach consensus.
	ProposalsFailed Figure
	// SlowApplies counts requests that took over 100 ms to apply; HeartbeatFailures counts heartbeats that it sent late
	// as the leader, because disk or CPU were too slow.
	SlowApplies, HeartbeatFailures Figure
	// DBSize is the size of the database file in bytes, DBInUse the part that is in use, and Quota its limit.
	DBSize, DBInUse, Quota Figure

	// Alarms is how many errors the local member reports about itself, and Errors are their texts.
	Alarms Figure
	Errors []string
	// OwnSize is the size of its database as reported to other members, and SmallestSize the size of the smallest
	// database of the other voters, in bytes.
	OwnSize, SmallestSize Figure
	// Version is the version of the local member, and FarthestRTT the longest response time of another voter, in
	// seconds.
	Version     string
	FarthestRTT Figure
	// Peers are the other members that it is or was connected to, by ID; nil if it reports none.
	Peers map[uint64]Peer
	// Process is the running process.
	Process EtcdProcess
	// Settings are the flags of the local etcd.
	Settings EtcdSettings
	// Certificates are those that connections to etcd depend on, as last read.
	Certificates CertificateReading
}

// EtcdProcess is the process of the local etcd.
type EtcdProcess struct {
	Known   bool
	Runs    bool
	Started time.Duration // when it was started, on the clock of [Input], if it runs
}

// startedSince reports whether the process was started after that moment, or none runs.
func (p EtcdProcess) startedSince(moment time.Duration) bool {
	return p.Known && (!p.Runs || p.Started > moment)
}

// Peer is what the local etcd reports about another member. Its number of connections is not used: etcd still counts
// those to a machine that lost power up to three minutes ago.
type Peer struct {
	Received float64 // bytes from it so far
	Active   bool    // etcd has established a connection to it, and uses it
}

// etcdSource is where the local etcd reports about itself.
const etcdSource = " of the local etcd's /metrics"
