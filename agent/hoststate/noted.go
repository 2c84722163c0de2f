// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package hoststate

import "time"

// Noted contains the records on this host's disk about the host's past.
type Noted struct {
	Cluster, Member  uint64 // IDs of this host's last cluster and member
	LastCluster      uint64 // the cluster that last answered
	Standby          uint64 // this host's learner, if it is a standby
	Lost             uint64 // the member that this host gave up because its data is gone
	Mount            string // the last known mount points of the member's data
	Instances        []string
	Backoff          time.Duration     // how long this host waits before its next join
	HealthyPeriod    HealthyPeriod     // the healthy period of an ejected host
	BootstrapAttempt BootstrapAttempt  // the bootstrap attempt that this host is committed to
	Domains          map[uint64]string // the failure domain of each member's host, by member ID; must not be changed
	DefragEnded      time.Time         // when the last request for a defragmentation ended; zero if none has
	Learners         map[uint64]int    // the permanent learners' limits, by member ID; must not be changed
}

// Noted returns the records on this host's disk. base is the wait after the first failed join.
func (f *State) Noted(bootID string, now, base time.Duration) Noted {
	n := Noted{
		LastCluster: f.LastCluster(), Standby: f.Standby(), Instances: f.Instances(),
		Backoff:       f.Backoff(bootID, now, base),
		HealthyPeriod: f.recordedPeriod(bootID, now), BootstrapAttempt: f.BootstrapAttempt(),
	}
	n.Cluster, n.Member = f.Membership()
	f.mu.Lock()
	defer f.mu.Unlock()
	n.Learners, n.DefragEnded = f.learners, f.ask.DefragEnded
	n.Domains, n.Lost, n.Mount = f.domains, uint64(f.cluster.Lost), f.cluster.Mount
	return n
}
