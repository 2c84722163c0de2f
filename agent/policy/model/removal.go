// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package model

import "github.com/quorumd/quorumd/agent/policy"

// removalState is an operator's request to a host's agent to remove another host's member permanently, and the
// operation that removes the member. The request is on the disk of the host that received it. There is at most one
// request at a time, because several would only queue for the lock, as other operations do.
type removalState struct {
	rmRequested uint8 // a removal is requested
	rmHost      uint8 // the host that received the request
	rmTarget    uint8 // the host whose member is to be removed
	rmEvenLive  uint8 // the member is to be removed even if it answers
	rmGone      uint8 // the member has left the list
	rmExpired   uint8 // the request has expired
	rmBegun     uint8 // rmHost's disk records that the operation has begun or may have begun

	opRemove uint8 // the operation is a removal; its phase is begun or, from just before the removal is sent, ready
	rmCount  uint8 // number of requests so far
}

func (r *removalState) pack(p *packer) {
	p.put(r.rmRequested, 1)
	p.put(r.rmHost, 3)
	p.put(r.rmTarget, 3)
	p.put(r.rmEvenLive, 1)
	p.put(r.rmGone, 1)
	p.put(r.rmExpired, 1)
	p.put(r.rmBegun, 1)
	p.put(r.opRemove, 1)
	p.put(r.rmCount, 2)
}

func (r *removalState) unpack(p *packer) {
	r.rmRequested = p.get(1)
	r.rmHost, r.rmTarget = p.get(3), p.get(3)
	r.rmEvenLive, r.rmGone = p.get(1), p.get(1)
	r.rmExpired, r.rmBegun = p.get(1), p.get(1)
	r.opRemove, r.rmCount = p.get(1), p.get(2)
}

func (w *world) tidyRemoval() {
	if w.op == 0 {
		w.opRemove = 0
	}
	if w.rmRequested == 0 {
		w.rmExpired, w.rmBegun = 0, 0
	}
	if w.rmRequested|w.opRemove == 0 {
		w.removalState = removalState{rmCount: w.rmCount}
	}
}

// requestRemoval applies an operator's request that a host remove another host's member.
func (m *machine) requestRemoval(w *world, by int, arg uint8) bool {
	h, who := &w.hosts[by], arg/2
	if int(w.rmCount) >= m.Removals || w.rmRequested|w.opRemove != 0 || h.agent != up || h.down != 0 || !w.reaches(by) {
		return false
	}
	if int(who) >= w.n || int(who) == by || w.hosts[who].list == unlisted {
		return false
	}
	w.removalState = removalState{
		rmRequested: 1, rmHost: uint8(by), rmTarget: who, rmEvenLive: arg % 2, rmCount: w.rmCount + 1,
	}
	return true
}

// noteRemoval ends the removal request if the agent has decided to end it.
func (w *world) noteRemoval(ends bool) {
	if ends {
		w.rmRequested = 0
	}
}

// judgeRemovalNote checks whether the removal request may end: it is done, expired or released.
func (w *world) judgeRemovalNote(h int, ends bool) breach {
	if ends && (!w.reaches(h) || w.removes(h) || w.rmGone|w.rmBegun|w.rmExpired == 0) {
		return removalDropped
	}
	return fine
}

// noteRemovalBegins writes to disk that a removal begins, before its record is created. If that record is gone later,
// the operation counts as released.
func (w *world) noteRemovalBegins(step uint8) {
	if step == beginRemoval {
		w.rmBegun = 1
	}
}

// removes reports whether the operation is a removal requested from this host.
func (w *world) removes(h int) bool { return w.opRemove != 0 && w.ownsOperation(h) }

// putRemoval applies a write to the record of a removal.
func (w *world) putRemoval(h int, step uint8) {
	switch step {
	case beginRemoval:
		w.op, w.opRemove, w.opHost, w.opLeft, w.opPhase, w.opID, w.opBoot, w.opOld, w.opCycle, w.opStandby = 1, 1,
			uint8(h), 0, phaseBegun, 0, 1, 0, 0, 0
	case setRemoving:
		w.opPhase = phaseReady
	case endRemoval:
		w.op = 0
	}
}

// removalSeen returns what an agent observes of a removal. Every agent that reaches etcd observes the operation; only
// the host that received the request observes the request.
func (w *world) removalSeen(h int) removalState {
	var r removalState
	if w.opRemove != 0 && w.reaches(h) {
		r = removalState{opRemove: 1, rmTarget: w.rmTarget, rmGone: w.rmGone}
	}
	if w.rmRequested != 0 && int(w.rmHost) == h {
		r.rmRequested, r.rmTarget, r.rmEvenLive = w.rmRequested, w.rmTarget, w.rmEvenLive
		r.rmGone, r.rmExpired, r.rmBegun = w.rmGone, w.rmExpired, w.rmBegun
	}
	return r
}

func (s *observation) rmMember() uint64 {
	if s.rmGone != 0 {
		return goneID
	}
	return memberID(int(s.rmTarget))
}

func (s *observation) removalView() *policy.Removal {
	if s.rmRequested == 0 {
		return nil
	}
	return &policy.Removal{
		MemberID: s.rmMember(), By: "root", Reason: "testing", Live: s.rmEvenLive != 0, Expired: s.rmExpired != 0,
		Begun: s.rmBegun != 0,
	}
}

func (s *observation) removalOp() *policy.Op {
	name := hostName(int(s.opHost))
	op := &policy.Op{
		Kind: policy.KindRemove, Host: name, HostName: name, Phase: policy.PhaseBegun, Token: tokenPast,
		MemberID: s.rmMember(),
		SameBoot: s.opBoot != 0 || s.opHost != s.self, OrphanedFor: long(s.orphan),
	}
	if s.opPhase == phaseReady {
		op.Phase = policy.PhaseRemoving
	}
	if s.opToken != 0 {
		op.Token = tokenNow
	}
	return op
}

// leadershipOf returns the host whose leadership the viewpoint sets: this host or, while it removes or replaces another
// host's member or is to transfer leadership, the other host.
func (s *observation) leadershipOf() uint8 {
	switch own := s.opHost == s.self; {
	case s.opRemove != 0 && own:
		return s.rmTarget
	case s.trRequested != 0 && s.op == 0 && s.health != slow: // a slow host may be the leader that steps down
		return s.trTarget
	case s.opReplace != 0 && own && s.rpGone == 0 && s.hosts[s.self].list == voter:
		return s.rpTarget
	}
	return s.self
}

// removalNames reports whether a host's member is to be removed. In a view, such a member that is down has been down
// for a long time.
func (s *observation) removalNames(i int) bool {
	return s.rmRequested|s.opRemove != 0 && int(s.rmTarget) == i && s.rmGone == 0
}

// removalMustContinue reports whether a removal that may have been sent to etcd is in flight. Only its host ends it.
func (w *world) removalMustContinue() bool {
	return w.opRemove != 0 && w.opPhase == phaseReady && w.rmGone == 0
}

// canSpare reports whether the other voters can permanently do without this one.
func (w *world) canSpare(who int) bool {
	if w.hosts[who].list != voter {
		return true
	}
	left, serving := 0, 0
	for i := range w.n {
		if i == who || w.hosts[i].list != voter {
			continue
		}
		left++
		serving += int(bit(w.serves(i)))
	}
	if w.serves(who) {
		return left > 0 && serving == left
	}
	return left > 0 && serving >= majority(left)
}

// judgeRemoval checks a step of a removal against the world at the time of the view.
func (w *world) judgeRemoval(h int, c choice) breach {
	who := int(w.rmTarget)
	target := &w.hosts[who]
	switch {
	case c.step == endRemoval: // a release by an operator is not a violation
		if target.lateRemove != 0 && target.faulted == 0 && w.rmGone == 0 {
			return removalForgotten
		}
		return fine
	case w.rmGone != 0: // the host's current member is a different one
		return removedWithoutOperation
	case c.step == removeMember && (!w.removes(h) || w.opPhase != phaseReady || int(c.target) != who):
		return removedWithoutOperation
	case c.step != removeMember && (w.rmRequested == 0 || int(w.rmHost) != h):
		return removedWithoutOperation
	case c.step == beginRemoval && w.rmBegun != 0:
		return removedAgain
	case c.step != removeMember && target.list == voter && w.rmEvenLive == 0 && w.answers(who):
		return liveRemoved
	case !w.canSpare(who):
		return removedAtRisk
	case c.step == beginRemoval && w.stable == 0:
		return unsettled
	}
	return fine
}
