// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package model

import (
	"fmt"
	"strings"

	"github.com/quorumd/quorumd/agent/policy"
)

// Quorum loss is explored separately, over smaller worlds. A world tracks the cluster that each host's data belongs to,
// the hosts' plans, and which etcds run. The real policy makes the agents' decisions, and refuses some of the plans
// that operators make. The explorations of Scenario cover how a host joins the recovered cluster; here the join is one
// step.

// QuorumLoss is a scope: a cluster that may have lost its quorum.
type QuorumLoss struct {
	Name   string
	Voters int
	Wiped  int // number of hosts that have lost their data disks
	Away   int // number of other hosts that are down at first, with their data, and may return
	// Behind is the number plus 1 of a host whose log is shorter than the others'; 0 for none.
	Behind int
	Budget int  // the maximum number of crashes, power losses and cuts in a trace
	Plans  int  // the maximum number of plans in a trace
	Reused bool // a host that has lost its data disk has lost its agent's records, too
}

// QuorumLosses returns the scopes that every test run explores.
func QuorumLosses() []QuorumLoss {
	return []QuorumLoss{
		{Name: "2 of 3 lost, one returns", Voters: 3, Wiped: 1, Away: 1, Budget: 1, Plans: 1},
		{Name: "2 of 3 lost for good, two plans", Voters: 3, Wiped: 2, Plans: 2, Reused: true},
		{Name: "none lost: a plan for a healthy cluster", Voters: 3, Budget: 1, Plans: 1},
	}
}

// DeepQuorumLosses returns larger scopes. Their exploration needs much memory and time; it ends when all states have
// been found, or at the caller's limit on their number.
func DeepQuorumLosses() []QuorumLoss {
	return []QuorumLoss{
		{Name: "2 of 3 lost, one returns, two plans", Voters: 3, Wiped: 1, Away: 1, Budget: 1, Plans: 2},
		{
			Name: "3 of 5 lost, one returns", Voters: 5, Wiped: 2, Away: 1, Behind: 1, Plans: 1,
		},
		{Name: "2 of 3 lost, 3 crashes, two plans", Voters: 3, Wiped: 1, Away: 1, Budget: 3, Plans: 2},
		{Name: "3 of 5 lost, a crash", Voters: 5, Wiped: 2, Away: 1, Behind: 1, Budget: 1, Plans: 1},
	}
}

// The clusters: none, the old cluster, and the cluster that plan k creates, which has number k + 1. maxPlans includes
// the one plan that a liveness run may make beyond the scope's limit.
const (
	noCluster uint8 = iota
	oldCluster
	maxPlans = 3
)

func recoveredCluster(plan uint8) uint8 { return plan + 1 }

// lossHost is a host after a quorum loss. Clusters and plans are numbered; 0 is none.
type lossHost struct {
	data        uint8 // the cluster that its data belongs to
	recorded    uint8 // the cluster that the host belongs to, as recorded on its disk
	runs        uint8 // its etcd runs
	failed      uint8 // its etcd has exited by itself
	startGuard  uint8 // etcd does not start at a boot
	plan        uint8 // its current plan
	movingAside uint8 // the host has begun to move its data aside for the plan
	aborted     uint8 // the plan is aborted
	lastPlan    uint8 // the last plan that the host completed
	copying     uint8 // the state of the copy that its agent makes
	copyOf      uint8 // the plan whose copy is complete on its disk
	agentDown   uint8
	hostDown    uint8
	cutOff      uint8 // no other host reaches this host, and it reaches none

	step     uint8 // the step that its agent has decided on
	stepPlan uint8 // the plan of that step; for a late host, withoutPlan plus the cluster that it reached
}

const (
	copyNone uint8 = iota
	copyRuns
	copyDone
	copyFailed
)

// lossPlan is a plan that operators made.
type lossPlan struct {
	survivor uint8 // the survivor's number plus 1; 0 while the plan does not exist
	hosts    uint8 // the hosts in the plan, one bit per host
	data     uint8 // the hosts in the plan that had data, one bit per host
	stale    uint8 // the old cluster has served since the plan was made, so its logs are longer than in the plan
}

// lossWorld is a state of the exploration.
type lossWorld struct {
	hosts     [maxHosts]lossHost
	plans     [maxPlans]lossPlan
	announced [maxPlans]uint8 // the plan's cluster publishes that it replaces the old one
	faults    uint8           // number of faults so far
}

// initial returns the world after the loss.
func (r QuorumLoss) initial() (w lossWorld) {
	for i := range r.Voters {
		h := &w.hosts[i]
		h.data, h.recorded, h.runs = oldCluster, oldCluster, 1
		switch left := r.Voters - i; {
		case left <= r.Wiped:
			h.data, h.runs = noCluster, 0
			if r.Reused {
				h.recorded = noCluster
			}
		case left <= r.Wiped+r.Away:
			h.hostDown, h.runs, h.agentDown = 1, 0, 1
		}
	}
	return w
}

// connected reports whether two hosts reach each other.
func (w *lossWorld) connected(a, b int) bool {
	x, y := &w.hosts[a], &w.hosts[b]
	return x.hostDown|y.hostDown == 0 && (a == b || x.cutOff|y.cutOff == 0)
}

// serves reports whether a cluster has a quorum that a host reaches.
func (r QuorumLoss) serves(w *lossWorld, cluster uint8, from int) bool {
	voters, up := 0, 0
	for i := range r.Voters {
		h := &w.hosts[i]
		voters += int(bit(cluster == oldCluster || h.data == cluster))
		up += int(bit(h.data == cluster && h.runs != 0 && w.connected(from, i)))
	}
	return up > 0 && up >= policy.Quorum(voters)
}

// reachedCluster returns the newest cluster with a quorum that a host reaches, or noCluster.
func (r QuorumLoss) reachedCluster(w *lossWorld, from int) uint8 {
	for c := recoveredCluster(maxPlans); c >= oldCluster; c-- {
		if r.serves(w, c, from) {
			return c
		}
	}
	return noCluster
}

// serving returns the clusters that serve anywhere, one bit per cluster.
func (r QuorumLoss) serving(w *lossWorld) (all uint8) {
	for i := range r.Voters {
		for c := oldCluster; c <= recoveredCluster(maxPlans); c++ {
			all |= bit(r.serves(w, c, i)) << c
		}
	}
	return all
}

// late reports whether the host is late to a recovery: the cluster that it reaches has announced that it replaced the
// host's own cluster.
func (w *lossWorld) late(i int, seen uint8) bool {
	h := &w.hosts[i]
	if seen <= oldCluster || w.announced[seen-recoveredCluster(1)] == 0 {
		return false
	}
	return policy.Successor{
		Old: lossClusterID(oldCluster), New: lossClusterID(seen), Answers: lossClusterID(seen),
		Noted: lossClusterID(h.recorded), Planned: h.plan != 0,
	}.Late()
}

// markStalePlans marks all plans as stale if the old cluster serves, because from then on its logs are longer than in
// the plans.
func (r QuorumLoss) markStalePlans(w *lossWorld) {
	if r.serving(w)&(1<<oldCluster) == 0 {
		return
	}
	for i := range w.plans {
		w.plans[i].stale = bit(w.plans[i].survivor != 0)
	}
}

// text returns a world on one line, for a trace.
func (r QuorumLoss) text(w *lossWorld) string {
	cluster := func(c uint8) string { return [...]string{"no", "old", "1st", "2nd", "3rd"}[c] }
	var all []string
	for i := range r.Voters {
		h := &w.hosts[i]
		s := fmt.Sprintf("%s=%s data", hostName(i), cluster(h.data))
		for _, f := range []struct {
			set  bool
			text string
		}{
			{h.recorded != h.data, cluster(h.recorded) + " cluster recorded"},
			{h.runs != 0, "runs"},
			{h.startGuard != 0, "start guard"},
			{h.plan != 0, fmt.Sprintf("plan %d", h.plan)},
			{h.movingAside != 0, "moves data aside"},
			{h.aborted != 0, "aborted"},
			{h.copyOf != 0, fmt.Sprintf("copy of plan %d", h.copyOf)},
			{h.copying == copyRuns, "copies"},
			{h.agentDown != 0, "no agent"},
			{h.hostDown != 0, "off"},
			{h.cutOff != 0, "cut off"},
		} {
			if f.set {
				s += "," + f.text
			}
		}
		all = append(all, s)
	}
	return strings.Join(all, "  ")
}
