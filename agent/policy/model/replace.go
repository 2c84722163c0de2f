// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package model

import (
	"time"

	"github.com/quorumd/quorumd/agent/policy"
	"github.com/quorumd/quorumd/agent/record"
)

// replacementState is what the agents report about a dead or unhealthy voter, and the operation in which a host
// replaces it. Only one voter is reported dead at a time. If several are down, agents replace voters only if a whole
// failure domain is down, which the model leaves out. Reports may be outdated until agents renew them.
type replacementState struct {
	dead uint8 // the host whose member all voters have reported dead for the grace period, plus 1
	// witness marks a voter that is unhealthy rather than dead: a source other than its own health state has confirmed
	// this for the grace period.
	witness uint8 // 1: if it does not answer, it hangs; 2: if it does not answer, it is too slow

	opReplace uint8 // the operation is a replacement; opStandby means that its host began as a standby
	rpTarget  uint8 // the host that is replaced
	rpGone    uint8 // the replaced host's member has left the list
	opVotes   uint8 // the operation's host began as a voter, so no host joins
	// opReported: every voter has reported again since the record was written or, for an aborted replacement, no call
	// to etcd can be applied any more.
	opReported uint8
}

// witnesses is the number of values of witness.
const witnesses = 3

// packedReport returns dead and witness as one number below 16, because the key has no bits left.
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
	if report := p.get(4); report > 0 {
		r.dead, r.witness = (report-1)/witnesses+1, (report-1)%witnesses
	}
	r.opReplace, r.rpTarget, r.rpGone, r.opReported = p.get(1), p.get(3), p.get(1), p.get(1)
}

// unpackVotes unpacks opVotes, which shares its bit with servedLong because the key has no bits left.
func (w *world) unpackVotes() {
	if w.opReplace != 0 {
		w.opVotes, w.servedLong = w.servedLong, 0
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

// seemsDead reports whether a host looks dead: its agent is not present, and its member does not run.
func (w *world) seemsDead(i int) bool {
	return w.mayBeDead(i) && !w.present(i) && !w.runs(i)
}

// graceOver lets the grace period of a host end: from then on, its voter or standby has been reported as dead, or its
// voter as unhealthy, for that long. It returns false if that cannot happen.
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

// reportAgain lets every voter's agent report again, or ends the time within which etcd can still apply a removal,
// which is the lock's TTL. It reports whether anything has changed.
func (w *world) reportAgain() bool {
	contradicted := w.dead != 0 && w.witness == 0 && !w.seemsDead(int(w.dead-1)) ||
		w.witness != 0 && w.hosts[w.dead-1].health != slow
	if contradicted {
		w.dead, w.witness = 0, 0
	}
	if w.opReplace == 0 || w.opReported != 0 || w.hosts[w.rpTarget].lateRemove != 0 && w.rpGone == 0 {
		return contradicted
	}
	w.opReported = 1
	return true
}

// replaces reports whether the operation is a replacement by this host.
func (w *world) replaces(h int) bool { return w.opReplace != 0 && w.ownsOperation(h) }

// putReplacement creates the record of a replacement by host h.
func (w *world) putReplacement(h int, step uint8, gone bool) {
	a := &w.hosts[h]
	w.op, w.opReplace, w.opHost, w.opLeft, w.opPhase, w.opID, w.opBoot, w.opOld = 1, 1, uint8(h), 0, phaseBegun, 0, 1, 0
	// A learner that was added late, after the decision, is not a standby yet.
	w.opStandby, w.rpTarget, w.rpGone = bit(a.list == learner && a.named != 0), a.target, bit(gone)
	w.opVotes = bit(a.list == voter && int(a.target) != h || step == beginRemoveLost)
}

// replacesItself reports whether the host of the replacement replaces its own member.
func (w *world) replacesItself() bool { return w.opReplace != 0 && w.rpTarget == w.opHost }

// agreesDead reports whether all observations of a host confirm that the voter reported dead is dead, and at least two
// voters' hosts report that.
func (w *world) agreesDead(h int) bool {
	if w.dead == 0 || w.witness != 0 || w.present(int(w.dead-1)) {
		return false
	}
	reporters := 0
	for i := range w.n {
		if w.hosts[i].list != voter || !w.answers(i) || i != h && w.hosts[h].blind != 0 {
			continue
		}
		if i == int(w.dead-1) || !w.present(i) && i != h {
			return false
		}
		reporters++
	}
	return reporters >= 2
}

// awaitsRepair reports whether the only voter that a host does not observe as live is reported dead or too slow to
// answer.
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
		WrittenFor: [...]time.Duration{ages, time.Second, time.Minute}[s.sinceWrite],
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

// lostOn is the time at which a member was lost. The policy evaluates only whether it is set.
var lostOn = time.Unix(1, 0)

// reportsLost returns a host's report that a member is lost, and that the host's etcd receives no messages from that
// member.
func reportsLost(id uint64) []record.Reachability {
	return []record.Reachability{{MemberID: record.MemberID(id), LostSince: lostOn, Link: record.LinkNone, For: ages}}
}

// connectionReports returns what a host reports about its voter's connection to the dead or slow voter. The connection
// to a dead voter is lost. The connection to a voter that is too slow to answer is established.
func (s *observation) connectionReports(i int) []record.Reachability {
	if s.witness == tardy && s.hosts[i].list == voter && i != int(s.dead-1) {
		who := record.MemberID(memberID(int(s.dead - 1)))
		return []record.Reachability{{MemberID: who, Peer: record.PortAnswers, Link: record.LinkUp, For: ages}}
	}
	if s.dead == 0 || s.witness != 0 || s.hosts[i].list != voter || i == int(s.dead-1) {
		return nil
	}
	return reportsLost(memberID(int(s.dead - 1)))
}

// judgeReplacement checks a step of a replacement against the world at the time of the view.
func (w *world) judgeReplacement(h int, c choice, leads bool, size policy.Target) breach {
	who, begins := int(w.rpTarget), c.step == beginReplace || c.step == beginRemoveLost
	if begins {
		who = int(c.target)
	}
	if who == h && (begins || w.replaces(h)) {
		return w.judgeOwnReplacement(h, c)
	}
	others, serving, unhealthy, known := 0, 0, 0, 0 // the replaced voter is not counted
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
		if found := w.judgeCompletion(c, who, leads, size); found != fine {
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

// judgeOwnReplacement checks a step by which a host replaces its own member: its data is gone and its disk records
// that, the other voters have quorum without it, and this host or a standby is ready.
func (w *world) judgeOwnReplacement(h int, c choice) breach {
	a := &w.hosts[h]
	if c.step == removeMember && (!w.replaces(h) || w.opPhase != phaseReady || int(c.target) != h || w.rpGone != 0) {
		return removedWithoutOperation
	}
	others, serving, unhealthy := 0, 0, 0
	for i := range w.n {
		g := &w.hosts[i]
		member := g.list != unlisted && g.named != 0 && !w.isPermanent(i)
		unhealthy += int(bit(i != h && member && g.health == slow && w.present(i)))
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
	case (c.step == beginReplace || c.step == beginRemoveLost) && w.stable == 0:
		return unsettled
	case c.step == beginReplace && (a.health != healthy || l >= 0),
		c.step == beginRemoveLost && (l < 0 || w.hosts[l].progress != steady || !w.answers(l)):
		return removedWithoutReplacement
	}
	return fine
}

// isDead reports whether a voter is reported dead, does not answer, and has no agent that is present.
func (w *world) isDead(i int) bool {
	return !w.answers(i) && !w.present(i) && w.witness == 0 && int(w.dead) == i+1
}

// judgeReplacementReady checks whether a host could replace a voter now.
func (w *world) judgeReplacementReady(h int) breach {
	a := &w.hosts[h]
	caughtUp := a.named != 0 && a.progress == steady && w.answers(h)
	switch l := w.learnerAt(); {
	case a.health != healthy, a.list == learner && !caughtUp, a.list != learner && l >= 0:
		return removedWithoutReplacement
	case a.list != learner:
		return w.judgeLearnerAdd(h)
	}
	return fine
}

// judgeReplacementEnd checks that no removal can be applied after the operation ends.
func (w *world) judgeReplacementEnd() breach {
	target := &w.hosts[w.rpTarget]
	if w.opReplace != 0 && w.rpGone == 0 && target.lateRemove != 0 && target.faulted == 0 {
		return removalForgotten
	}
	return fine
}

// mustReplace reports whether agents have to replace a dead or unhealthy voter, or a dead standby: no other host is
// down or unhealthy, and enough hosts remain for the target. It returns false if a host is stopping or has stopped etcd
// for work that only an operator or an external system ends, because there may be no quorum until then. After any other
// work, the host starts its etcd again by itself.
func (w *world) mustReplace(target policy.Target) bool {
	owner := &w.hosts[w.opHost]
	if w.opCycle != 0 && (owner.phase != idle || owner.stopped != 0) && owner.awaitsOthers() {
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
		case !w.isPermanent(i):
			others++
		}
	}
	return dead == 1 && others >= min(voters, target.Voters) && w.quorum()
}

// judgeRepaired checks a quiescent world in which only the host of a dead voter or standby is down, or a voter is
// unhealthy.
func (w *world) judgeRepaired(target policy.Target, repair bool) breach {
	voters, _ := w.votes()
	others, follows := 0, 0
	for i := range w.n {
		h := &w.hosts[i]
		if h.list == voter && h.health == slow {
			return notReplaced
		}
		others += int(bit(h.down == 0 && h.health != slow && !w.isPermanent(i)))
		follows += int(bit(h.list == learner && h.down == 0 && !w.isPermanent(i)))
	}
	joined := voters > others && w.op == 0 && w.lock < 0 // the possible replacement has joined as an additional voter
	if joined && (!repair || voters <= target.Voters) {
		return fine
	}
	want := min(target.Voters, others)
	enough := voters == want || want%2 == 0 && voters == want-1 // one further voter would make the number even
	if !enough || w.op != 0 || w.lock >= 0 || !w.allServe() {
		return notReplaced
	}
	if voters == target.Voters && follows != min(target.Standbys, others-voters) {
		return notReplaced
	}
	return fine
}

// repairPromises returns the promises about members that agents remove without an operator.
func repairPromises() map[breach]promise {
	return map[breach]promise{
		liveReplaced: {
			"P2", "a voter is replaced although it responds, its agent responds, or not all others report it dead",
		},
		replacedOnOldReports:      {"P2", "a voter is removed on reports older than the record of its replacement"},
		replacedInCommon:          {"P7", "a voter is replaced while another voter is unhealthy, or recently was"},
		removedWithoutReplacement: {"P2", "a voter is removed although no host is ready to replace it"},
		ejectedJoins: {
			"P2", "an ejected host begins to join before it has been healthy for long enough",
		},
		ejectionForgotten: {"P2", "a voter is replaced without recording the ejection of its host"},
		usefulStandbyRemoved: {
			"P2", "a standby is removed although it is not lost",
		},
		standbyWithoutReplacement: {"P2", "a standby is removed although no host is ready to replace it"},
		notReplaced: {
			"liveness",
			"everything else is healed and time passes, but a dead or unhealthy voter or a dead standby stays",
		},
	}
}

// smallReplacements returns the scopes of replacements of dead voters that every test run explores.
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

// Replacements returns the scopes of replacements of dead voters, as deep as a few minutes on two cores allow. In one
// of them, a second fault of any class can occur at every step.
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
			Name: "one dead voter of four replaced, any fault", Hosts: 5, Voters: 4,
			Target: policy.Target{Voters: 5}, Repair: true, Faults: AllFaults, Budget: 1, Liveness: true,
		},
		Scenario{
			Name: "a lost standby", Hosts: 3, Voters: 1, Target: policy.Target{Voters: 1, Standbys: 1},
			Repair: true, Faults: HostCrash, Budget: 1, Liveness: true,
		},
	)
}
