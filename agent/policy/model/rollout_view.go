// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package model

import (
	"slices"
	"time"

	"github.com/quorumd/quorumd/agent/policy"
)

// rolloutObservation holds everything on which a decision in a rollout may depend.
type rolloutObservation struct {
	observation
	recordsOnly uint8 // the host reads only the records in this round
	state       uint8
	waiting     uint8
	due         uint8
	hold        uint8
	upgraded    uint8 // the hosts whose members report the new version, one bit per host
	leader      uint8
	queueDown   [policy.DownLength]uint8
	queueWriter uint8
}

// observe returns what host h observes of the world now.
func (r Rollout) observe(w *rolloutWorld, h int) rolloutObservation {
	own := &w.hosts[h]
	s := rolloutObservation{observation: observation{
		n: uint8(r.hosts()), self: uint8(h), reachable: bit(w.reaches(h)), unit: own.unit, health: slow * own.slow,
		hostRequest: own.hostRequest,
	}}
	if h < rolloutVoters {
		s.data, s.recorded = current, 1
	}
	if s.reachable == 0 {
		return s
	}
	s.stable, s.idleTime = 1, w.cooledDown
	for i := range r.hosts() {
		g := &w.hosts[i]
		present := g.agentDown|g.hostDown|g.cutOff == 0
		s.hosts[i] = observedHost{
			list: voter * bit(i < rolloutVoters), named: 1, live: bit(g.unit == active),
			present: bit(i == h || present), health: slow * g.slow, ready: bit(i < rolloutVoters),
			requests: bit(g.work != noWork && !g.standing().Done()), inOperation: bit(g.inOperation()),
		}
	}
	s.lockHeld, s.lockMine = bit(w.lock != 0), bit(int(w.lock) == h+1 && own.hasToken != 0)
	if w.op != 0 {
		s.op, s.opCycle, s.opHost, s.opPhase, s.opToken, s.servedLong = 1, 1, w.op-1, w.phase, w.token, w.servedLong
	}
	if w.owns(h) {
		s.opBoot, s.opRestarted = w.sameBoot, own.restarted&bit(own.unit == active)
	}
	s.recordsOnly = bit(!w.looksEveryRound(h))
	s.state, s.waiting, s.due, s.hold = w.state, w.waiting, bit(own.lastResumed < w.resumed), w.hold
	for i := range rolloutVoters {
		s.upgraded |= w.hosts[i].upgraded << i
	}
	s.leader, s.queueDown, s.queueWriter = w.leader, w.queueDown, w.queueWriter
	return s
}

const rolloutID = "r1"

// The versions of etcd before and after an upgrade.
var (
	oldMinor = policy.Version{Major: 3, Minor: 6, Patch: 16}
	newMinor = policy.Version{Major: 3, Minor: 7, Patch: 3}
)

// view builds the view of a cluster with a rollout and a queue.
func (s *rolloutObservation) view(r Rollout) policy.View {
	v := s.observation.view(policy.Target{Voters: rolloutVoters}, selfFirst)
	if v.Asked != nil {
		v.Asked.Rollout = rolloutID
	}
	if s.reachable == 0 {
		return v
	}
	v.Resting, v.HostsFresh = s.recordsOnly != 0, s.recordsOnly == 0
	for i := range v.Cluster.Members {
		m := &v.Cluster.Members[i]
		m.Leader = m.Live && m.ID == memberID(int(s.leader))
		if m.Version = oldMinor; r.Upgrade && s.upgraded>>i&1 != 0 {
			m.Version = newMinor
		}
	}
	v.Rollout = &policy.Rollout{
		ID: rolloutID, Work: r.Work, Runs: s.state == rolloutRuns, Due: s.due != 0, Began: time.Minute,
		Hold: s.hold != 0, WithoutSnapshot: true,
	}
	if r.Upgrade {
		v.Rollout.Upgrade = newMinor.String()
	}
	for i := range r.hosts() {
		if s.waiting>>i&1 != 0 {
			v.Rollout.Waiting = append(v.Rollout.Waiting, hostName(i))
		}
	}
	if s.queueWriter != 0 {
		v.Queue = &policy.Queue{Hosts: policy.SizeClass(r.hosts())}
		for _, d := range s.queueDown {
			if d != 0 {
				v.Queue.Down = append(v.Queue.Down, hostName(int(d)-1))
			}
		}
	}
	return v
}

// hostAt returns the number of the host with an ID.
func (r Rollout) hostAt(id string) int {
	return slices.IndexFunc([]string{"A", "B", "C", "D"}, func(name string) bool { return name == id })
}
