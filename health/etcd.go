// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package health

import "time"

// EtcdReading is what the local etcd tells of itself, at one moment. The zero value means unknown.
// Counters count since that etcd has started.
type EtcdReading struct {
	// At is the moment it was asked, on the clock of [Input].
	At time.Duration
	// Member is the ID of the member that answered; 0 when it named none.
	Member uint64
	// WALFsync and BackendCommit are how long its own writes took to become durable: of its log, and of its database.
	WALFsync, BackendCommit Histogram
	// HasLeader is 1 while it knows a leader, and LeaderChanges how many it has seen come.
	HasLeader, LeaderChanges Figure
	// ProposalsFailed are writes that were not agreed on.
	ProposalsFailed Figure
	// SlowApplies are requests that took over 100 ms to carry out; HeartbeatFailures heartbeats that it sent late as
	// the leader, for want of disk or processor.
	SlowApplies, HeartbeatFailures Figure
	// DBSize is the size of the database file in bytes, DBInUse what of it is not free, and Quota what it may grow to.
	DBSize, DBInUse, Quota Figure

	// Alarms is how many errors the local member reports of itself, and Errors are their words.
	Alarms Figure
	Errors []string
	// OwnSize is the size of its database as it tells the others, and SmallestSize that of the other voter with the
	// smallest, in bytes.
	OwnSize, SmallestSize Figure
	// Version is that of the local member, and FarthestRTT the longest that another voter takes to answer, in seconds.
	Version     string
	FarthestRTT Figure
	// Peers are the other members that it has a connection to, or has had, by their IDs; nil when it tells of none.
	Peers map[uint64]Peer
	// Process is the one that runs.
	Process EtcdProcess
	// Settings is how the local etcd is set.
	Settings EtcdSettings
	// Certificates are those that connections to etcd hang on, as they were seen last.
	Certificates CertificateReading
}

// EtcdProcess is the local etcd's.
type EtcdProcess struct {
	Known   bool
	Runs    bool
	Started time.Duration // when it was started, on the clock of [Input]; of one that runs
}

// startedSince reports whether what runs was started after that moment, or nothing runs.
func (p EtcdProcess) startedSince(moment time.Duration) bool {
	return p.Known && (!p.Runs || p.Started > moment)
}

// Peer is what the local etcd tells of another member. Whether it counts a connection to it says little: to a machine
// without power it does so for three minutes.
type Peer struct {
	Received float64 // bytes from it so far
}

// etcdSource is where the local etcd tells of itself.
const etcdSource = " of the local etcd's /metrics"

// SilentEtcd is the reading of an etcd that tells nothing, and why.
func SilentEtcd(why string) EtcdReading {
	h, f := Histogram{Absent: why}, Figure{Absent: why}
	return EtcdReading{
		WALFsync: h, BackendCommit: h, HasLeader: f, LeaderChanges: f, ProposalsFailed: f,
		SlowApplies: f, HeartbeatFailures: f, DBSize: f, DBInUse: f, Quota: f, Alarms: f, OwnSize: f, SmallestSize: f,
		FarthestRTT: f, Settings: EtcdSettings{Absent: why},
	}
}
