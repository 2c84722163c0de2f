// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package model

import (
	"strconv"

	"github.com/quorumd/quorumd/agent/policy"
)

// lossObservation holds everything on which a decision after a quorum loss may depend.
type lossObservation struct {
	n, self, cluster uint8
	host             lossHost
	survivor         uint8 // this host is its plan's survivor
	late             uint8
	members          uint8 // hosts that are members of the reached cluster; here and below, one bit per host
	live             uint8 // hosts whose members are live
	present          uint8 // hosts whose agents are present
	ready            uint8 // hosts that may join
}

func (r QuorumLoss) observe(w *lossWorld, i int) lossObservation {
	own := w.hosts[i]
	own.step, own.stepPlan = 0, 0
	o := lossObservation{n: uint8(r.Voters), self: uint8(i), cluster: r.reachedCluster(w, i), host: own}
	o.late = bit(w.late(i, o.cluster))
	if own.plan != 0 {
		o.survivor = bit(int(w.plans[own.plan-1].survivor) == i+1)
	}
	if o.cluster == noCluster {
		return o
	}
	for k := range r.Voters {
		h := &w.hosts[k]
		present := w.connected(i, k) && h.agentDown == 0
		o.members |= bit(o.cluster == oldCluster || h.data == o.cluster) << k
		o.live |= bit(h.data == o.cluster && h.runs != 0 && w.connected(i, k)) << k
		o.present |= bit(present) << k
		o.ready |= bit(present && w.mayJoin(k, o.cluster)) << k
	}
	return o
}

// mayJoin reports whether a host is a spare that may join that cluster.
func (w *lossWorld) mayJoin(i int, cluster uint8) bool {
	h := &w.hosts[i]
	return h.data == noCluster && h.plan == 0 && (h.recorded == noCluster || h.recorded == cluster)
}

// lossClusterID returns the ID of a cluster; 0 for none.
func lossClusterID(cluster uint8) uint64 {
	if cluster == noCluster {
		return 0
	}
	return clusterID + uint64(cluster) - 1
}

// view builds the view of a host after a quorum loss, including the host's plan if it has one.
func (o *lossObservation) view() policy.View {
	s := observation{
		n: o.n, self: o.self, reachable: bit(o.cluster != noCluster), recorded: bit(o.host.recorded != noCluster),
		stable: 1, idleTime: 2, unit: inactive,
	}
	switch {
	case o.host.runs != 0 && o.live>>o.self&1 != 0:
		s.unit = active
	case o.host.runs != 0:
		s.unit = starting
	case o.host.failed != 0:
		s.unit = failed
	}
	if o.host.data != noCluster {
		s.data = current
	}
	for i := range s.hosts[:o.n] {
		s.hosts[i] = observedHost{
			list: voter * (o.members >> i & 1), named: 1, live: o.live >> i & 1, present: o.present >> i & 1,
			ready: o.ready >> i & 1,
		}
	}
	v := s.view(policy.Target{Voters: int(o.n)}, selfFirst)
	v.CopiedFor = policy.Never
	v.Data.ClusterID = lossClusterID(o.host.data)
	v.Self.ClusterID = lossClusterID(o.host.recorded)
	v.Cluster.ExpectedID, v.Cluster.ID = v.Self.ClusterID, lossClusterID(o.cluster)
	v.Self.MemberID = 0
	if o.host.recorded != noCluster && o.host.recorded == o.host.data || o.host.recorded == oldCluster {
		v.Self.MemberID = memberID(int(o.self))
	}
	switch k := o.host.plan; {
	case k != 0:
		v.Recovery = &policy.Recovery{
			Plan: strconv.Itoa(int(k)), Old: lossClusterID(oldCluster), New: lossClusterID(recoveredCluster(k)),
			Survivor: o.survivor != 0,
			Member:   memberID(int(o.self)), GivenUp: o.host.aborted != 0,
			Noted: o.host.recorded == recoveredCluster(k),
			Copy: policy.Copy{State: [...]policy.CopyState{
				policy.CopyNone, policy.CopyRuns, policy.CopyComplete, policy.CopyFailed,
			}[o.host.copying]},
		}
	case o.late != 0:
		v.Recovery = &policy.Recovery{Old: lossClusterID(oldCluster), New: lossClusterID(o.cluster), Late: true}
	}
	return v
}

// remains returns what a host reports to operators about its data and the length of its log.
func (r QuorumLoss) remains(w *lossWorld, i int, data, longer uint8) policy.HostRemains {
	out := policy.HostRemains{
		HostID: hostName(i), Host: hostName(i), Cluster: "model", PeerURL: hostName(i), Empty: data == noCluster,
		Quorum: r.reachedCluster(w, i) != noCluster,
	}
	if out.Empty {
		return out
	}
	out.ClusterID, out.MemberID, out.Term = lossClusterID(data), memberID(i), 1
	out.Index = 10 + uint64(longer)
	if r.Behind == i+1 {
		out.Index -= 5
	}
	out.Commit = out.Index
	for k := range r.Voters {
		out.InData = append(out.InData, policy.ListedMember{ID: memberID(k), Name: hostName(k), PeerURL: hostName(k)})
	}
	return out
}
