// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package model

import (
	"time"

	"github.com/quorumd/quorumd/agent/policy"
)

// replacementState is what the agents know about a dead voter, and the operation in which a host replaces it. One voter is
// reported dead at a time: if several are down, only a whole failure domain is replaced, which the model leaves out.
// The reports may be old until they are renewed.
type replacementState struct {
	dead uint8 // the host whose member all voters have reported dead for the grace period, plus 1
	// witness marks a voter that is unhealthy instead of dead: something besides its own health state has confirmed
	// that for long enough
	witness uint8 // 1: it hangs if it does not answer; 2: it is too slow to answer then

	opReplace uint8 // the operation is a replacement; opStandby then marks that its host was a standby when it began
	rpTarget  uint8 // the host that is replaced
	rpGone    uint8 // that member has left the list
	opVotes   uint8 // its host voted when it began: no host joins
	// every voter has reported again since the record was written; for one that is given up: no call to etcd can land
	// any more
	opReported uint8
}

// witnesses is the number of values of witness.
const witnesses = 3

// packedReport returns in one number below 16 which host is reported dead or unhealthy, and by what witness: the key is full.
func (r *replacementState) packedReport() uint8 {
	if r.dead == 0 {
		return 0
	}
	return 1 + (r.dead-1)*witnesses + r.witness
}

func (r *replacementState) pack(p *packer) {
	p.put(r.packedReport(), 4)
	p.put(r.opReplace, 1)
	p.put(r.rpTarget, 3)
	p.put(r.rpGone, 1)
	p.put(r.opReported, 1)
}

func (r *replacementState) unpack(p *packer) {
	if called := p.get(4); called > 0 {
		r.dead, r.witness = (called-1)/witnesses+1, (called-1)%witnesses
	}
	r.opReplace, r.rpTarget, r.rpGone, r.opReported = p.get(1), p.get(3), p.get(1), p.get(1)
}

// unpackVotes unpacks what shares its place with the time since a taken-down host is back: the key is full.
func (w *world) unpackVotes() {
	if w.opReplace != 0 {
		w.opVotes, w.back = w.back, 0
	}
}

func (r *replacementState) permute(place *[maxHosts]uint8) {
	if r.dead != 0 {
		r.dead = place[r.dead-1] + 1
	}
	if r.opReplace != 0 {
		r.rpTarget = place[r.rpTarget]
	}
}

func (w *world) tidyReplacement() {
	if w.op == 0 || w.opReplace == 0 {
		w.replacementState = replacementState{dead: w.dead, witness: w.witness}
	}
	if w.dead != 0 && !w.mayBeDead(int(w.dead-1)) {
		w.dead = 0
	}
	if w.dead == 0 {
		w.witness = 0
	}
}

// mayBeDead reports whether a host has a voter or a standby, which may be reported dead.
func (w *world) mayBeDead(i int) bool {
	h := &w.hosts[i]
	return h.list == voter || h.list == learner && h.named != 0
}

// seemsDead reports whether a host looks dead: its agent is gone, and no member reaches its etcd.
func (w *world) seemsDead(i int) bool {
	return w.mayBeDead(i) && !w.present(i) && !w.runs(i)
}

// graceOver lets a voter or a standby have been dead for the grace period, or an unhealthy voter have had a witness for
// as long.
func (m *machine) graceOver(w *world, i int) bool {
	if w.dead != 0 || !w.quorum() {
		return false
	}
	switch h := &w.hosts[i]; {
	case m.Repair && w.seemsDead(i):
		w.dead = uint8(i) + 1
	case m.Unhealthy && h.list == voter && h.health == slow:
		w.dead, w.witness = uint8(i)+1, 1+bit(m.Tardy)
	default:
		return false
	}
	return true
}

// reported lets every voter's agent report again, or ends the time in which a removal may land at etcd: it lands within
// the lock's time to live or never.
func (w *world) reported() bool {
	heard := w.dead != 0 && w.witness == 0 && !w.seemsDead(int(w.dead-1)) ||
		w.witness != 0 && w.hosts[w.dead-1].health != slow
	if heard {
		w.dead, w.witness = 0, 0
	}
	if w.opReplace == 0 || w.opReported != 0 || w.hosts[w.rpTarget].lateRemove != 0 && w.rpGone == 0 {
		return heard
	}
	w.opReported = 1
	return true
}

// replaces reports whether the operation is a replacement by this host.
func (w *world) replaces(h int) bool { return w.opReplace != 0 && w.opHosts(h) }

// putReplacement records that one host replaces another.
func (w *world) putReplacement(h int, step uint8, gone bool) {
	a := &w.hosts[h]
	w.op, w.opReplace, w.opHost, w.opLeft, w.opPhase, w.opID, w.opBoot, w.opOld = 1, 1, uint8(h), 0, phaseBegun, 0, 1, 0
	// one that was added late, after the decision, is no standby yet
	w.opStandby, w.rpTarget, w.rpGone = bit(a.list == learner && a.named != 0), a.target, bit(gone)
	w.opVotes = bit(a.list == voter && int(a.target) != h || step == beginLeave)
}

// replacesItself reports whether the host of the replacement replaces its own member.
func (w *world) replacesItself() bool { return w.opReplace != 0 && w.rpTarget == w.opHost }

// agreesDead reports whether a host, by all it sees, has to agree that the voter reported dead is dead.
func (w *world) agreesDead(h int) bool {
	if w.dead == 0 || w.witness != 0 || w.present(int(w.dead-1)) {
		return false
	}
	speakers := 0
	for i := range w.n {
		if w.hosts[i].list != voter || !w.answers(i) || i != h && w.hosts[h].blind != 0 {
			continue
		}
		if i == int(w.dead-1) || !w.present(i) && i != h {
			return false
		}
		speakers++
	}
	return speakers >= 2
}

// awaitsRepair reports whether the only voter that a host does not see live is reported dead, or too slow to answer.
func (w *world) awaitsRepair(h int) bool {
	if w.dead == 0 || w.hosts[h].blind != 0 || w.cycles(int(w.dead-1)) {
		return false
	}
	slow := w.witness == tardy && w.isUnhealthy(int(w.dead-1)) && !w.hosts[w.dead-1].inOperation()
	if !slow && !w.agreesDead(h) {
		return false
	}
	for i := range w.n {
		if w.hosts[i].list == voter && !w.answers(i) && i != int(w.dead-1) {
			return false
		}
	}
	return true
}

func (s *observation) replacementOp() *policy.Op {
	name, began := hostName(int(s.opHost)), policy.RoleSpare
	switch {
	case s.opStandby != 0:
		began = policy.RoleStandby
	case s.opVotes != 0:
		began = policy.RoleVoter
	}
	op := &policy.Op{
		Kind: policy.KindReplace, Host: name, HostName: name, PeerURL: began.RecordedURL(name),
		Target: policy.RoleVoter, Phase: opPhase(s.opPhase), Token: tokenPast, Replaces: memberID(int(s.rpTarget)),
		SameBoot: s.opBoot != 0 || s.opHost != s.self, Elapsed: long(s.opOld), OrphanedFor: long(s.orphan),
		WrittenFor: [...]time.Duration{ages, time.Second, time.Minute}[s.probe],
	}
	if s.rpGone != 0 {
		op.Replaces = goneID
	}
	switch itself := s.rpTarget == s.opHost; {
	case itself && s.opVotes != 0:
		op.Target = policy.RoleSpare
	case s.opVotes != 0:
		op.Target = ""
	}
	switch s.opPhase {
	case phaseReady:
		op.Phase = policy.PhaseRemoving
	case phaseRollback:
		op.WrittenFor = long(s.opReported)
		op.Outcome, op.Reason = policy.Orphaned, string(policy.Orphaned)+": it was aborted"
	}
	return op
}

// connectionReports returns the report of a voter's host about the voter that is reported dead or too slow to answer: it has
// connections to it.
func (s *observation) connectionReports(i int) []policy.Sight {
	if s.witness == tardy && s.hosts[i].list == voter && i != int(s.dead-1) {
		who := memberID(int(s.dead - 1))
		return []policy.Sight{{MemberID: who, Connected: true, ConnectedKnown: true, For: ages}}
	}
	if s.dead == 0 || s.witness != 0 || s.hosts[i].list != voter || i == int(s.dead-1) {
		return nil
	}
	return []policy.Sight{{MemberID: memberID(int(s.dead - 1)), Lost: true, ConnectedKnown: true, For: ages}}
}

// judgeReplacement checks a step that removes a dead voter, or is about to, against the world at the time of the view.
func (w *world) judgeReplacement(h int, c choice, leads bool) breach {
	who, begins := int(w.rpTarget), c.step == beginReplace || c.step == beginLeave
	if begins {
		who = int(c.target)
	}
	if who == h && (begins || w.replaces(h)) {
		return w.judgeOwnReplacement(h, c)
	}
	others, serving, unhealthy, known := 0, 0, 0, 0 // the replaced voter counts for nothing
	for i := range w.n {
		g := &w.hosts[i]
		strained := g.health == slow || g.health == clockWrong && w.isUnhealthy(who)
		unhealthy += int(bit(i != who && g.list == voter && strained && w.present(i)))
		if i != who && g.list == voter {
			others++
			serving += int(bit(w.serves(i)))
			known += int(bit(w.serves(i) && w.present(i) && g.health == healthy))
		}
	}
	switch {
	case c.step == removeMember && (!w.replaces(h) || w.opPhase != phaseReady || int(c.target) != who || w.rpGone != 0):
		return removedWithoutOperation
	case (c.step == removeMember || c.step != beginReplace && w.opPhase == phaseBegun) && w.opReported == 0:
		return replacedOnOldReports
	case w.hosts[h].list == voter:
		if found := w.judgeCompletion(c, who, leads); found != fine {
			return found
		}
		if known < majority(others) {
			return removedAtRisk
		}
	case w.isUnhealthy(who):
		if c.step != beginReplace && (w.answers(who) || w.witness == tardy) {
			return removedBeforeJoin
		}
	case !w.isDead(who):
		return liveReplaced
	}
	switch {
	case unhealthy > 0:
		return replacedInCommon
	case serving < others || serving < majority(others+1):
		return removedAtRisk
	case c.step == beginReplace && w.stable == 0:
		return unsettled
	}
	if w.hosts[h].list == voter {
		return fine
	}
	return w.judgeReplacementReady(h)
}

// judgeOwnReplacement checks a step by which a host replaces its own member: its data is gone and its disk records that, the
// other voters do without it, and this host or a standby is ready.
func (w *world) judgeOwnReplacement(h int, c choice) breach {
	a := &w.hosts[h]
	if c.step == removeMember && (!w.replaces(h) || w.opPhase != phaseReady || int(c.target) != h || w.rpGone != 0) {
		return removedWithoutOperation
	}
	others, serving, unhealthy := 0, 0, 0
	for i := range w.n {
		g := &w.hosts[i]
		unhealthy += int(bit(i != h && g.list != unlisted && g.named != 0 && g.health == slow && w.present(i)))
		if i != h && g.list == voter {
			others++
			serving += int(bit(w.serves(i)))
		}
	}
	l := w.learnerAt()
	switch {
	case !a.lossRecorded() || w.runs(h):
		return liveReplaced
	case unhealthy > 0:
		return replacedInCommon
	case serving < others || serving < majority(others+1):
		return removedAtRisk
	case (c.step == beginReplace || c.step == beginLeave) && w.stable == 0:
		return unsettled
	case c.step == beginReplace && (a.health != healthy || l >= 0),
		c.step == beginLeave && (l < 0 || w.hosts[l].progress != steady || !w.answers(l)):
		return removedWithoutReplacement
	}
	return fine
}

// isDead reports whether a voter is the one reported dead, and really is.
func (w *world) isDead(i int) bool {
	return !w.answers(i) && !w.present(i) && w.witness == 0 && int(w.dead) == i+1
}

// judgeReplacementReady checks whether a host could replace a voter now.
func (w *world) judgeReplacementReady(h int) breach {
	a := &w.hosts[h]
	l := w.learnerAt()
	caughtUp := a.list == learner && a.named != 0 && a.progress == steady && w.answers(h)
	if a.health != healthy || l >= 0 && l != h || l == h && !caughtUp {
		return removedWithoutReplacement
	}
	return fine
}

// judgeReplacementEnd checks whether the operation may end: no call to etcd may land later.
func (w *world) judgeReplacementEnd() breach {
	target := &w.hosts[w.rpTarget]
	if w.opReplace != 0 && w.rpGone == 0 && target.lateRemove != 0 && target.faulted == 0 {
		return removalForgotten
	}
	return fine
}

// unreplaced reports whether a world must not leave a voter dead: only its host is down, and another one could have
// replaced it, with the same number of voters. A host that has stopped its etcd for external work, or is about to, may
// cost the quorum while a voter is dead, and operators bring it back; for any other work it starts its etcd again.
func (w *world) unreplaced(target policy.Target) bool {
	turn := &w.hosts[w.opHost]
	if w.opCycle != 0 && (turn.phase != idle || turn.stopped != 0) && turn.awaitsOthers() {
		return false
	}
	voters, _ := w.votes()
	dead, others := 0, 0
	for i := range w.n {
		h := &w.hosts[i]
		switch {
		case h.down != 0 && w.mayBeDead(i), h.health == slow && h.list == voter:
			dead++
		case h.health == slow:
			return false
		case h.down != 0:
			return false
		default:
			others++
		}
	}
	return dead == 1 && others >= min(voters, target.Voters) && w.quorum()
}

// judgeRepaired returns what is wrong with a world at rest in which only the host of a dead voter is down.
func (w *world) judgeRepaired(target policy.Target, repair bool) breach {
	voters, _ := w.votes()
	others, follows := 0, 0
	for i := range w.n {
		h := &w.hosts[i]
		if h.list == voter && h.health == slow {
			return notReplaced
		}
		others += int(bit(h.down == 0 && h.health != slow))
		follows += int(bit(h.list == learner && h.down == 0))
	}
	joined := voters > others && w.op == 0 && w.lock < 0 // its possible replacement has joined as an additional voter
	if joined && (!repair || voters <= target.Voters) {
		return fine
	}
	if voters != min(target.Voters, others) || w.op != 0 || w.lock >= 0 || !w.allServe() {
		return notReplaced
	}
	if voters == target.Voters && follows != min(target.Standbys, others-voters) {
		return notReplaced
	}
	return fine
}

// repairPromises returns those about members that are removed without an operator.
func repairPromises() map[breach]promise {
	return map[breach]promise{
		liveReplaced: {
			"P2", "a voter is replaced that responds, whose agent responds, or that not all others report dead",
		},
		replacedOnOldReports:      {"P2", "a voter is removed on reports older than the record of its replacement"},
		replacedInCommon:          {"P7", "a voter is replaced while another one is unhealthy, or recently was"},
		removedWithoutReplacement: {"P2", "a voter is removed and no host is ready to replace it"},
		ejectedJoins: {
			"P2", "an ejected host begins to join before it has been healthy long enough",
		},
		ejectionForgotten: {"P2", "a voter is replaced without recording the ejection of its host"},
		usefulStandbyRemoved: {
			"P2", "a standby is removed although its host is up and it keeps up, or could",
		},
		standbyWithoutReplacement: {"P2", "a standby is removed and no host is ready to replace it"},
		notReplaced: {
			"liveness", "a voter stays dead, all else is healed, time passes, and no host replaces it",
		},
	}
}

// smallReplacements returns the scopes of dead voters and their replacement that every test run explores.
func smallReplacements() []Scenario {
	return []Scenario{
		{
			Name: "a dead voter replaced", Hosts: 4, Voters: 3, Target: policy.Target{Voters: 3}, Repair: true,
			Faults: HostCrash, Budget: 1, Liveness: true,
		},
		{
			Name: "a dead voter replaced by a standby", Hosts: 4, Voters: 3,
			Target: policy.Target{Voters: 3, Standbys: 1}, Repair: true, Faults: HostCrash, Budget: 1, Liveness: true,
		},
		{
			Name: "a dead surplus voter", Hosts: 4, Voters: 4, Target: policy.Target{Voters: 3},
			Repair: true, Faults: HostCrash, Budget: 1, Liveness: true,
		},
		{
			Name: "a standby that falls behind", Hosts: 3, Voters: 1, Target: policy.Target{Voters: 1, Standbys: 1},
			Repair: true, Faults: Slowness, Budget: 1, Liveness: true,
		},
	}
}

// Replacements returns the scopes of dead voters and their replacement, as deep as a few minutes on two cores allow: a
// second fault of every class happens at every step.
func Replacements() []Scenario {
	late := HostCrash | LateCall | AgentCrash | HealthChange
	return append(smallReplacements(),
		Scenario{
			Name: "a dead voter replaced, a late call or crash", Hosts: 4, Voters: 3, Target: policy.Target{Voters: 3},
			Repair: true, Faults: late, Budget: 2, Liveness: true, Long: true,
		},
		Scenario{
			Name: "a dead voter replaced by a standby, 2 faults", Hosts: 4, Voters: 3,
			Target: policy.Target{Voters: 3, Standbys: 1}, Repair: true, Faults: AllFaults, Budget: 2, Liveness: true,
			Long: true,
		},
		Scenario{
			Name: "a dead voter replaced, and one host taken down", Hosts: 4, Voters: 3,
			Target: policy.Target{Voters: 3}, Repair: true, Requests: 1, Faults: HostCrash, Budget: 1, Liveness: true,
		},
		Scenario{
			Name: "a dead surplus voter, a late call or crash", Hosts: 4, Voters: 4,
			Target: policy.Target{Voters: 3}, Repair: true, Faults: late, Budget: 2, Liveness: true, Long: true,
		},
		Scenario{
			Name: "a dead surplus voter, a spare, any fault", Hosts: 5, Voters: 4,
			Target: policy.Target{Voters: 3}, Repair: true, Faults: AllFaults, Budget: 1, Liveness: true,
		},
		Scenario{
			Name: "a dead one of four voters replaced, any fault", Hosts: 5, Voters: 4,
			Target: policy.Target{Voters: 5}, Repair: true, Faults: AllFaults, Budget: 1, Liveness: true,
		},
		Scenario{
			Name: "a lost standby", Hosts: 3, Voters: 1, Target: policy.Target{Voters: 1, Standbys: 1},
			Repair: true, Faults: HostCrash, Budget: 1, Liveness: true,
		},
	)
}
