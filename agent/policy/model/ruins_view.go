// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package model

import (
	"strconv"

	"github.com/quorumd/quorumd/agent/policy"
)

// outlook is all that a decision in such a world may depend on.
type outlook struct {
	n, self, seen uint8
	host          survived
	survivor      uint8 // this host is that of its plan
	late          uint8
	members       uint8 // of the cluster that is seen, a bit each
	live          uint8
	present       uint8 // hosts whose agents are present
	ready         uint8 // hosts that may join
}

func (r Ruin) look(w *ruins, i int) outlook {
	own := w.hosts[i]
	own.step, own.on = 0, 0
	o := outlook{n: uint8(r.Voters), self: uint8(i), seen: r.seen(w, i), host: own}
	o.late = bit(w.late(i, o.seen))
	if own.plan != 0 {
		o.survivor = bit(int(w.plans[own.plan-1].survivor) == i+1)
	}
	if o.seen == nowhere {
		return o
	}
	for k := range r.Voters {
		h := &w.hosts[k]
		heard := w.together(i, k) && h.dead == 0
		o.members |= bit(o.seen == oldCluster || h.data == o.seen) << k
		o.live |= bit(h.data == o.seen && h.runs != 0 && w.together(i, k)) << k
		o.present |= bit(heard) << k
		o.ready |= bit(heard && w.mayJoin(k, o.seen)) << k
	}
	return o
}

// mayJoin reports whether a host is a spare of that cluster.
func (w *ruins) mayJoin(i int, cluster uint8) bool {
	h := &w.hosts[i]
	return h.data == nowhere && h.plan == 0 && (h.noted == nowhere || h.noted == cluster)
}

// ruinCluster returns the ID of a cluster; 0 for none.
func ruinCluster(cluster uint8) uint64 {
	if cluster == nowhere {
		return 0
	}
	return clusterID + uint64(cluster) - 1
}

// view builds the view as in the other walks, of another cluster and with a plan.
func (o *outlook) view() policy.View {
	s := sight{
		n: o.n, self: o.self, reachable: bit(o.seen != nowhere), known: bit(o.host.noted != nowhere), stable: 1,
		cool: 2, unit: inactive,
	}
	switch {
	case o.host.runs != 0 && o.live>>o.self&1 != 0:
		s.unit = active
	case o.host.runs != 0:
		s.unit = starting
	case o.host.failed != 0:
		s.unit = failed
	}
	if o.host.data != nowhere {
		s.data = current
	}
	for i := range s.hosts[:o.n] {
		s.hosts[i] = seen{
			list: voter * (o.members >> i & 1), named: 1, live: o.live >> i & 1, present: o.present >> i & 1,
			ready: o.ready >> i & 1,
		}
	}
	v := s.view(policy.Target{Voters: int(o.n)}, selfFirst)
	v.CopiedFor = policy.Never
	v.Data.ClusterID = ruinCluster(o.host.data)
	v.Self.ClusterID, v.Cluster.ExpectedID, v.Cluster.ID = ruinCluster(o.host.noted), ruinCluster(o.host.noted),
		ruinCluster(o.seen)
	v.Self.MemberID = 0
	if o.host.noted != nowhere && o.host.noted == o.host.data || o.host.noted == oldCluster {
		v.Self.MemberID = memberID(int(o.self))
	}
	switch k := o.host.plan; {
	case k != 0:
		v.Recovery = &policy.Recovery{
			Plan: strconv.Itoa(int(k)), Old: ruinCluster(oldCluster), New: ruinCluster(made(k)),
			Survivor: o.survivor != 0,
			Member:   memberID(int(o.self)), GivenUp: o.host.givenUp != 0, Noted: o.host.noted == made(k),
			Copy: policy.Copy{State: [...]policy.CopyState{
				policy.CopyNone, policy.CopyRuns, policy.CopyComplete, policy.CopyFailed,
			}[o.host.copying]},
		}
	case o.late != 0:
		v.Recovery = &policy.Recovery{Old: ruinCluster(oldCluster), New: ruinCluster(o.seen), Late: true}
	}
	return v
}

// remains returns what a host reports about itself: its data, and the current length of its log.
func (r Ruin) remains(w *ruins, i int, data, longer uint8) policy.HostRemains {
	out := policy.HostRemains{
		HostID: hostName(i), Host: hostName(i), Cluster: "model", PeerURL: hostName(i), Empty: data == nowhere,
		Quorum: r.seen(w, i) != nowhere,
	}
	if out.Empty {
		return out
	}
	out.ClusterID, out.MemberID, out.Term = ruinCluster(data), memberID(i), 1
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
