// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package model

import "github.com/quorumd/quorumd/agent/policy"

// removing is an operator's request to a host's agent: remove another host's member for good. It is on the requested
// host's disk. There is at most one such request at a time: several would only queue for the lock, as other operations
// do.
type removing struct {
	rm     uint8 // it is requested
	rmBy   uint8 // of this host
	rmWho  uint8 // the host whose member is to be removed
	rmLive uint8 // even if it answers
	rmGone uint8 // that member has left the list
	rmOver uint8 // the request has expired
	rmRuns uint8 // that host's disk records that its operation has begun or may have

	opRemove uint8 // the operation is a removal; its phase is begun or, once etcd may have been asked, ready
	rms      uint8 // number of requests so far
}

func (r *removing) pack(p *packer) {
	p.put(r.rm, 1)
	p.put(r.rmBy, 3)
	p.put(r.rmWho, 3)
	p.put(r.rmLive, 1)
	p.put(r.rmGone, 1)
	p.put(r.rmOver, 1)
	p.put(r.rmRuns, 1)
	p.put(r.opRemove, 1)
	p.put(r.rms, 2)
}

func (r *removing) unpack(p *packer) {
	r.rm = p.get(1)
	r.rmBy, r.rmWho = p.get(3), p.get(3)
	r.rmLive, r.rmGone = p.get(1), p.get(1)
	r.rmOver, r.rmRuns = p.get(1), p.get(1)
	r.opRemove, r.rms = p.get(1), p.get(2)
}

func (w *world) tidyRemoval() {
	if w.op == 0 {
		w.opRemove = 0
	}
	if w.rm == 0 {
		w.rmOver, w.rmRuns = 0, 0
	}
	if w.rm|w.opRemove == 0 {
		w.removing = removing{rms: w.rms}
	}
}

// askRemoval is an operator who asks a host to remove another host's member.
func (m *machine) askRemoval(w *world, by int, arg uint8) bool {
	h, who := &w.hosts[by], arg/2
	if int(w.rms) >= m.Removals || w.rm|w.opRemove != 0 || h.agent != up || h.down != 0 || !w.reaches(by) {
		return false
	}
	if int(who) >= w.n || int(who) == by || w.hosts[who].list == unlisted {
		return false
	}
	w.removing = removing{rm: 1, rmBy: uint8(by), rmWho: who, rmLive: arg % 2, rms: w.rms + 1}
	return true
}

// noteRemoval records an agent's decision about its removal request.
func (w *world) noteRemoval(ends bool) {
	if ends {
		w.rm = 0
	}
}

// judgeRemovalNote checks whether the removal request may end: it is done, expired or released.
func (w *world) judgeRemovalNote(h int, ends bool) breach {
	if ends && (!w.reaches(h) || w.removes(h) || w.rmGone|w.rmRuns|w.rmOver == 0) {
		return removalDropped
	}
	return fine
}

// noteRemovalBegins is written before the record of a removal: if the record is gone later, it was released.
func (w *world) noteRemovalBegins(step uint8) {
	if step == beginRemoval {
		w.rmRuns = 1
	}
}

// removes reports whether the operation is a removal requested from this host.
func (w *world) removes(h int) bool { return w.opRemove != 0 && w.opHosts(h) }

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

// removalSeen returns what an agent sees of a removal: every agent that reaches etcd sees the operation, only its own
// host sees the request.
func (w *world) removalSeen(h int) removing {
	var r removing
	if w.opRemove != 0 && w.reaches(h) {
		r = removing{opRemove: 1, rmWho: w.rmWho, rmGone: w.rmGone}
	}
	if w.rm != 0 && int(w.rmBy) == h {
		r.rm, r.rmWho, r.rmLive, r.rmGone, r.rmOver, r.rmRuns = w.rm, w.rmWho, w.rmLive, w.rmGone, w.rmOver, w.rmRuns
	}
	return r
}

func (s *sight) rmMember() uint64 {
	if s.rmGone != 0 {
		return goneID
	}
	return memberID(int(s.rmWho))
}

func (s *sight) removalView() *policy.Removal {
	if s.rm == 0 {
		return nil
	}
	return &policy.Removal{
		MemberID: s.rmMember(), By: "root", Reason: "testing", Live: s.rmLive != 0, Expired: s.rmOver != 0,
		Begun: s.rmRuns != 0,
	}
}

func (s *sight) removalOp() *policy.Op {
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

// leaves returns whose leadership matters: this host's, or that of the host whose member it removes or replaces.
func (s *sight) leaves() uint8 {
	switch own := s.opHost == s.self; {
	case s.opRemove != 0 && own:
		return s.rmWho
	case s.opReplace != 0 && own && s.rpGone == 0 && s.hosts[s.self].list == voter:
		return s.rpWho
	}
	return s.self
}

// rmWants reports whether a host's member is to be removed. If it is silent, it has been for long; how long is open.
func (s *sight) rmWants(i int) bool {
	return s.rm|s.opRemove != 0 && int(s.rmWho) == i && s.rmGone == 0
}

// held reports whether a removal that etcd may have been asked for is in flight: only its own host continues it.
func (w *world) held() bool { return w.opRemove != 0 && w.opPhase == phaseReady && w.rmGone == 0 }

// spares reports whether the other voters can do without one for good.
func (w *world) spares(who int) bool {
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
	who := int(w.rmWho)
	target := &w.hosts[who]
	switch {
	case c.step == endRemoval: // an operator's release is not that step's fault
		if target.lateRemove != 0 && target.faulted == 0 && w.rmGone == 0 {
			return removalForgotten
		}
		return fine
	case w.rmGone != 0: // the member that is there now is another one
		return removedUnasked
	case c.step == removeMember && (!w.removes(h) || w.opPhase != phaseReady || int(c.target) != who):
		return removedUnasked
	case c.step != removeMember && (w.rm == 0 || int(w.rmBy) != h):
		return removedUnasked
	case c.step == beginRemoval && w.rmRuns != 0:
		return removedAgain
	case c.step != removeMember && target.list == voter && w.rmLive == 0 && w.answers(who):
		return liveRemoved
	case !w.spares(who):
		return removedAtRisk
	case c.step == beginRemoval && w.stable == 0:
		return unsettled
	}
	return fine
}
