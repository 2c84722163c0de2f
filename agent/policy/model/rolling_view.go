// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package model

import (
	"slices"
	"time"

	"github.com/quorumd/quorumd/agent/policy"
)

// rollSight is all that a decision in such a world may depend on.
type rollSight struct {
	sight
	rests   uint8 // it reads only the records
	state   uint8
	waiting uint8
	due     uint8
	leader  uint8
	down    [policy.DownLength]uint8
	queued  uint8
}

// look returns what a host sees.
func (r Roll) look(w *rolling, h int) rollSight {
	own := &w.hosts[h]
	s := rollSight{sight: sight{
		n: uint8(r.hosts()), self: uint8(h), reachable: bit(w.reaches(h)), unit: own.unit, fit: slow * own.slow,
		cycling: own.cycling,
	}}
	if h < rollVoters {
		s.data, s.known = current, 1
	}
	if s.reachable == 0 {
		return s
	}
	s.stable, s.cool = 1, w.cool
	for i := range r.hosts() {
		g := &w.hosts[i]
		heard := g.dead|g.off|g.apart == 0
		s.hosts[i] = seen{
			list: voter * bit(i < rollVoters), named: 1, live: bit(g.unit == active),
			present: bit(i == h || heard), fit: slow * g.slow, ready: bit(i < rollVoters),
			wants: bit(g.ask != nothing && !g.standing().Done()), turn: bit(g.turn()),
		}
	}
	s.held, s.mine = bit(w.lock != 0), bit(int(w.lock) == h+1 && own.belief != 0)
	if w.op != 0 {
		s.op, s.opCycle, s.opHost, s.opPhase, s.opToken, s.back = 1, 1, w.op-1, w.phase, w.token, w.back
	}
	if w.owns(h) {
		s.opBoot, s.opRestarted = w.boot, own.restarted&bit(own.unit == active)
	}
	s.rests = bit(!w.called(h))
	s.state, s.waiting, s.due = w.state, w.waiting, bit(own.had < w.resumed)
	s.leader, s.down, s.queued = w.leader, w.down, w.queued
	return s
}

// rollout is the ID of the only one.
const rollout = "r1"

// view builds the view as in the other walks, with a rollout and a queue.
func (s *rollSight) view(r Roll) policy.View {
	v := s.sight.view(policy.Target{Voters: rollVoters}, selfFirst)
	if v.Asked != nil {
		v.Asked.Rollout = rollout
	}
	if s.reachable == 0 {
		return v
	}
	v.Resting, v.HostsFresh = s.rests != 0, s.rests == 0
	for i := range v.Cluster.Members {
		m := &v.Cluster.Members[i]
		m.Leader = m.Live && m.ID == memberID(int(s.leader))
	}
	v.Rollout = &policy.Rollout{
		ID: rollout, Work: r.Work, Runs: s.state == rollRuns, Due: s.due != 0, Began: time.Minute,
	}
	for i := range r.hosts() {
		if s.waiting>>i&1 != 0 {
			v.Rollout.Waiting = append(v.Rollout.Waiting, hostName(i))
		}
	}
	if s.queued != 0 {
		v.Queue = &policy.Queue{Hosts: policy.SizeClass(r.hosts())}
		for _, d := range s.down {
			if d != 0 {
				v.Queue.Down = append(v.Queue.Down, hostName(int(d)-1))
			}
		}
	}
	return v
}

// hostAt returns the number of a host.
func (r Roll) hostAt(id string) int {
	return slices.IndexFunc([]string{"A", "B", "C", "D"}, func(name string) bool { return name == id })
}
