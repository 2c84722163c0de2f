// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package hoststate

import "time"

// Noted is what this host's disk says of its past.
type Noted struct {
	Cluster, Member  uint64 // that it was last a member of
	LastCluster      uint64 // the cluster that last answered
	Standby          uint64 // this host's learner, if it is a standby
	Lost             uint64 // the member that this host has given up, since its data is gone
	Mount            string // where the file systems were mounted that held the member's data
	Instances        []string
	Backoff          time.Duration     // before the next join
	HealthyPeriod    HealthyPeriod     // of a host that was taken out
	BootstrapAttempt BootstrapAttempt  // the attempt to make a cluster that this host stands by
	Domains          map[uint64]string // in which the members' hosts are, by member ID; not to be changed
}

// Noted gives what stands on this host's disk; base is how long to wait after the first join that failed.
func (f *State) Noted(bootID string, now, base time.Duration) Noted {
	n := Noted{
		LastCluster: f.LastCluster(), Standby: f.Standby(), Instances: f.Instances(),
		Backoff:       f.Backoff(bootID, now, base),
		HealthyPeriod: f.cleanStretch(bootID, now), BootstrapAttempt: f.BootstrapAttempt(),
	}
	n.Cluster, n.Member = f.Membership()
	f.mu.Lock()
	defer f.mu.Unlock()
	n.Domains, n.Lost, n.Mount = f.domains, uint64(f.cluster.Lost), f.cluster.Mount
	return n
}
