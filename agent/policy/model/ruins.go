// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package model

import (
	"fmt"
	"strings"

	"github.com/quorumd/quorumd/agent/policy"
)

// Quorum loss is a walk of its own, over smaller worlds. It tracks the cluster that each host's data belongs to, the
// hosts' plans, and what runs. Every agent asks the real policy. Operators make plans, and the real policy refuses
// some. How a host joins the recovered cluster is left to the other walks: here it is one step.

// Ruin is a scope of that walk: a former cluster with that many voters.
type Ruin struct {
	Name   string
	Voters int
	Wiped  int // number of hosts that have lost their disks
	Away   int // number of other hosts that are off at first, with their data, and may come back
	// Behind is the number plus 1 of a host whose log is shorter than the others'; 0 for none.
	Behind int
	Budget int  // most crashes, power losses and cuts in one story
	Plans  int  // most plans in one story
	Reused bool // a host whose disk is lost has also lost its system, and remembers nothing
}

// Ruins returns the scopes that every test run explores.
func Ruins() []Ruin {
	return []Ruin{
		{Name: "2 of 3 lost, one returns", Voters: 3, Wiped: 1, Away: 1, Budget: 1, Plans: 1},
		{Name: "2 of 3 lost for good, two plans", Voters: 3, Wiped: 2, Plans: 2, Reused: true},
		{Name: "none lost: a plan for a healthy cluster", Voters: 3, Budget: 1, Plans: 1},
	}
}

// DeepRuins returns larger ones, which need memory and time: each ends at its bound or at its fixpoint.
func DeepRuins() []Ruin {
	return []Ruin{
		{Name: "2 of 3 lost, one returns, two plans", Voters: 3, Wiped: 1, Away: 1, Budget: 1, Plans: 2},
		{
			Name: "3 of 5 lost, one returns", Voters: 5, Wiped: 2, Away: 1, Behind: 1, Plans: 1,
		},
		{Name: "2 of 3 lost, 3 crashes, two plans", Voters: 3, Wiped: 1, Away: 1, Budget: 3, Plans: 2},
		{Name: "3 of 5 lost, a crash", Voters: 5, Wiped: 2, Away: 1, Behind: 1, Budget: 1, Plans: 1},
	}
}

// The clusters: none, the old one, and the one made by plan k, which is number k + 1. A run to rest may make one more
// plan.
const (
	nowhere uint8 = iota
	oldCluster
	maxPlans = 3
)

func made(plan uint8) uint8 { return plan + 1 }

// survived is a host. Clusters and plans are numbered; 0 is none.
type survived struct {
	data    uint8 // its cluster
	noted   uint8 // the cluster it belongs to, by its disk
	runs    uint8 // its etcd runs
	failed  uint8 // or has exited by itself
	held    uint8 // it is not started at a boot
	plan    uint8 // its current plan
	parted  uint8 // and it has begun to move its data aside
	givenUp uint8
	last    uint8 // the plan that has ended successfully
	copying uint8 // copyNone, copyRuns, copyDone or copyBroken, as known to its agent
	whole   uint8 // the plan whose copy is on disk
	dead    uint8 // its agent
	off     uint8 // the host
	apart   uint8 // it neither reaches other hosts nor is reached

	step uint8 // that its agent has decided on
	on   uint8 // the plan that it was decided for, or the cluster that a late host has seen
}

const (
	copyNone uint8 = iota
	copyRuns
	copyDone
	copyBroken
)

// planned is a plan that was made.
type planned struct {
	survivor uint8 // its number plus 1; 0 while there is no such plan
	facts    uint8 // the hosts in it, a bit each
	data     uint8 // those of them that had data
	stale    uint8 // the old cluster has served since: every log of it is longer
}

// ruins is a state of the walk.
type ruins struct {
	hosts     [maxHosts]survived
	plans     [maxPlans]planned
	announced [maxPlans]uint8 // the cluster publishes which cluster it replaces
	spent     uint8           // of the budget
}

// first returns the world after the loss.
func (r Ruin) first() (w ruins) {
	for i := range r.Voters {
		h := &w.hosts[i]
		h.data, h.noted, h.runs = oldCluster, oldCluster, 1
		switch left := r.Voters - i; {
		case left <= r.Wiped:
			h.data, h.runs = nowhere, 0
			if r.Reused {
				h.noted = nowhere
			}
		case left <= r.Wiped+r.Away:
			h.off, h.runs, h.dead = 1, 0, 1
		}
	}
	return w
}

// together reports whether two hosts reach each other.
func (w *ruins) together(a, b int) bool {
	x, y := &w.hosts[a], &w.hosts[b]
	return x.off|y.off == 0 && (a == b || x.apart|y.apart == 0)
}

// serves reports whether a cluster has a quorum that a host reaches.
func (r Ruin) serves(w *ruins, cluster uint8, from int) bool {
	voters, up := 0, 0
	for i := range r.Voters {
		h := &w.hosts[i]
		voters += int(bit(cluster == oldCluster || h.data == cluster))
		up += int(bit(h.data == cluster && h.runs != 0 && w.together(from, i)))
	}
	return up > 0 && up >= policy.Quorum(voters)
}

// seen returns the cluster that a host reaches; nowhere if none has a quorum there.
func (r Ruin) seen(w *ruins, from int) uint8 {
	for c := made(maxPlans); c >= oldCluster; c-- {
		if r.serves(w, c, from) {
			return c
		}
	}
	return nowhere
}

// serving returns the clusters that serve anywhere, a bit each.
func (r Ruin) serving(w *ruins) (all uint8) {
	for i := range r.Voters {
		for c := oldCluster; c <= made(maxPlans); c++ {
			all |= bit(r.serves(w, c, i)) << c
		}
	}
	return all
}

// late reports whether the cluster that a host reaches publishes that it replaces the host's cluster.
func (w *ruins) late(i int, seen uint8) bool {
	h := &w.hosts[i]
	if seen <= oldCluster || w.announced[seen-made(1)] == 0 {
		return false
	}
	return policy.Successor{
		Old: ruinCluster(oldCluster), New: ruinCluster(seen), Answers: ruinCluster(seen),
		Noted: ruinCluster(h.noted), Planned: h.plan != 0,
	}.Late()
}

// settle notes that the old cluster serves: from then on its logs are longer than in every plan.
func (r Ruin) settle(w *ruins) {
	if r.serving(w)&(1<<oldCluster) == 0 {
		return
	}
	for i := range w.plans {
		w.plans[i].stale = bit(w.plans[i].survivor != 0)
	}
}

// text shows a world in a story.
func (r Ruin) text(w *ruins) string {
	cluster := func(c uint8) string { return [...]string{"no", "old", "1st", "2nd", "3rd"}[c] }
	var all []string
	for i := range r.Voters {
		h := &w.hosts[i]
		s := fmt.Sprintf("%s=%s data", hostName(i), cluster(h.data))
		for _, f := range []struct {
			set  bool
			text string
		}{
			{h.noted != h.data, "belongs to the " + cluster(h.noted)},
			{h.runs != 0, "runs"},
			{h.held != 0, "held"},
			{h.plan != 0, fmt.Sprintf("plan %d", h.plan)},
			{h.parted != 0, "parts"},
			{h.givenUp != 0, "given up"},
			{h.whole != 0, fmt.Sprintf("copy of plan %d", h.whole)},
			{h.copying == copyRuns, "copies"},
			{h.dead != 0, "no agent"},
			{h.off != 0, "off"},
			{h.apart != 0, "cut off"},
		} {
			if f.set {
				s += "," + f.text
			}
		}
		all = append(all, s)
	}
	return strings.Join(all, "  ")
}
