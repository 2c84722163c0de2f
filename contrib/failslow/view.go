// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"time"

	"github.com/quorumd/quorumd/agent/policy"
	"github.com/quorumd/quorumd/health"
)

const clusterID = 7

// limits returns the default limits, with replacement of unhealthy voters after ten minutes.
func limits() policy.Limits {
	const s, m = time.Second, time.Minute
	return policy.Limits{
		Settle: 6 * s, Cooldown: 60 * s, PromoteStable: 60 * s, SteadyLag: 30 * s, PromoteLag: 100,
		LearnerStall: 5 * m, LearnerMax: 2 * time.Hour, OrphanGrace: 65 * s, HealthDelay: 10 * s,
		LockTTL: 30 * s, StartRetry: 6 * s, TransferTimeout: 30 * s, TransferInterval: m,
		ReturnStable: 15 * s, ReturnMax: 10 * m, ReturnGiveUp: 2 * time.Hour, ClockOffset: 5 * s,
		UnhealthyGrace: 10 * m, RepairsPerDay: 2, CleanFor: time.Hour,
	}
}

// view returns what an agent observes of a cluster in which nothing is in flight.
func (c *cluster) view(now time.Duration) policy.View {
	v := policy.View{
		Target: policy.Target{Voters: len(c.hosts), Configured: len(c.hosts)}, Limits: c.limits,
		Clock: policy.Clock{Known: true}, IdleFor: time.Hour, Lock: policy.Lock{Known: true},
		CopiedFor: policy.Never, PlaceFreeFor: time.Hour, HostsFresh: true,
		Cluster: policy.Cluster{
			Reachable: true, Listed: true, Fresh: true, Intact: true, Roomy: true, ID: clusterID,
			ExpectedID: clusterID, StableFor: time.Hour, DBSize: 1 << 30, Members: c.members(),
		},
		Repairs: c.repairs(now),
	}
	for _, h := range c.hosts {
		v.Hosts = append(v.Hosts, h.seen.policyHost(h.name, now))
	}
	return v
}

// members returns the member list.
func (c *cluster) members() []policy.Member {
	var all []policy.Member
	for i, h := range c.hosts {
		all = append(all, policy.Member{
			ID: h.member(), Name: h.name, PeerURL: peerURL(h.name), Live: true, Leader: i == c.leader,
			Version: etcdVersion(), LagKnown: true, LiveFor: time.Hour, SteadyFor: time.Hour,
		})
	}
	return all
}

// asVoter returns the view of a voter's agent.
func (c *cluster) asVoter(h *host, now time.Duration) policy.View {
	v := c.view(now)
	v.Self = policy.Self{
		ID: h.name, Name: h.name, PeerURL: peerURL(h.name), Mode: policy.Manage, Drives: true,
		Etcd: etcdVersion(), MemberID: h.member(), ClusterID: clusterID,
	}
	v.Unit = policy.Unit{State: policy.UnitActive, EnvReady: true, Since: time.Hour, SinceStart: time.Hour, Ran: true}
	v.Data = policy.Data{
		State: policy.DataMember, ClusterID: clusterID, MemberID: h.member(), Free: 100 << 30, FreeKnown: true,
	}
	v.Health = h.policyHealth()
	own := &v.Hosts[h.index]
	own.Own, own.Health, own.Ungated = true, v.Health.State, v.Health.Ungated
	v.LeadershipTransfers = policy.LeadershipTransfers{LastFor: now - max(h.stepped, h.began), InRow: h.inRow}
	if h.index == c.leader {
		v.LeadershipTransfers.LeadsFor = max(1, now-h.leadsAt)
	}
	if h.unfitNowAt > 0 {
		v.LeadershipTransfers.UnfitFor = max(1, now-h.unfitNowAt)
	}
	return v
}

// asSpare returns the view of the spare's agent, which replaces unhealthy voters.
func (c *cluster) asSpare(now time.Duration) policy.View {
	v := c.view(now)
	const name = "spare"
	v.Self = policy.Self{
		ID: name, Name: name, PeerURL: peerURL(name), Mode: policy.Manage, Drives: true,
		Etcd: etcdVersion(),
	}
	v.Unit = policy.Unit{State: policy.UnitInactive, SinceStart: policy.Never, Since: time.Hour}
	v.Data = policy.Data{State: policy.DataEmpty, Free: 100 << 30, FreeKnown: true}
	v.Health = policy.Health{State: health.OK, Qualified: true, Ungated: health.Everything, Text: "spare"}
	v.Hosts = append(v.Hosts, policy.Host{
		ID: name, Name: name, PeerURL: peerURL(name), Role: policy.RoleSpare, Health: health.OK,
		Ungated: health.Everything, Qualified: true, Manage: true, Own: true,
	})
	for i, h := range c.hosts {
		v.Cluster.Members[i].Fsyncs = h.witness.fsyncs(now)
	}
	return v
}

// etcdVersion returns the version that all hosts run.
func etcdVersion() policy.Version { return policy.ParseVersion("3.6.16") }
