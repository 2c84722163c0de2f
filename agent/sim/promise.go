// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"fmt"
	"slices"
	"strings"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"

	"github.com/quorumd/quorumd/agent/config"
	"github.com/quorumd/quorumd/agent/hooks"
	"github.com/quorumd/quorumd/agent/policy"
	"github.com/quorumd/quorumd/agent/record"
	"github.com/quorumd/quorumd/health"
)

// Breach is a broken promise of the design.
type Breach struct {
	Promise string // P1 to P9, or liveness
	Text    string
	At      time.Duration // time since the world began
	Host    string        // the host whose agent broke it, if any
}

// Error returns the breach as one line.
func (b *Breach) Error() string {
	who := ""
	if b.Host != "" {
		who = " by " + b.Host
	}
	return fmt.Sprintf("%s is broken at %s%s: %s", b.Promise, clock(b.At), who, b.Text)
}

// promises checks everything that agents do against the true state of the world, not against the agents' views. Because
// an agent observes a change only in its next round, most checks tolerate a view that is as old as staleness. The
// methods are called with the world locked, except for onStep and afterRound.
type promises struct {
	w            *world
	first        *Breach
	applyingLate bool // a long-delayed write is being applied

	op                *record.Op    // the operation as last observed
	opSince           time.Duration // when op last began or ended
	decoded           *record.Op    // the operation record as last decoded
	decodedAt         int64         // the revision of that record
	hostsChanged      time.Duration // when a host record last changed
	orphanedSince     time.Duration // when the operation's lock was last held, or there was no operation
	ownedOp           bool          // at the last check, the operation's lock was held, or there was no operation
	lockHolder        *process      // which process held the lock at the last check
	lockHeldAt        map[*process]time.Duration
	commands          map[string]bool // the IDs of the commands that have begun
	lastSteps         map[*process]repeatedStep
	retiredChanged    time.Duration              // when a retirement was last recorded or undone
	sizeChanged       time.Duration              // when an operator last resized the cluster
	operatorRemovedAt time.Duration              // when an operator last removed a member
	intrudedAt        time.Duration              // when an intruder last wrote
	repairedAt        map[uint64]time.Duration   // when the removal of the replaced voter was first sent, by member ID
	slowLeaderSince   map[*process]time.Duration // since when the process's host has led with a slow disk
	ejections         map[*host]ejection
	unhealthy         map[*host]unhealthyPeriod
	replaces          map[*host]uint64 // the member that each host was last promoted to replace
}

// repeatedStep is an agent's last step, with the number of times in a row that the agent has begun it, each time less
// than a second after the previous one.
type repeatedStep struct {
	step  policy.Step
	last  time.Duration
	times int
}

// maxRepetitions is how many times in a row an agent must begin the same step to count as spinning.
const maxRepetitions = 5

// staleness returns how old an agent's view may be when the agent acts: the calls of a round, its interval, and the
// calls of the step.
func (p *promises) staleness() time.Duration {
	t := p.w.plan.timing()
	return 4*t.CallTimeout + t.Interval + 4*t.CallTimeout
}

// breach records a breach. Only the first one is reported.
func (p *promises) breach(promise string, h *host, text string) {
	name := ""
	if h != nil {
		name = h.name
	}
	p.w.event(h, eventFault, 99, "BREACH of %s: %s", promise, text)
	if p.first == nil {
		p.first = &Breach{promise, text, p.w.now(), name}
	}
}

// lockOwner returns the process that wrote the lock, or nil if the lock is free.
func (p *promises) lockOwner() *process {
	if p.w.etcd.store.Get(p.w.keys.Lock()) != nil {
		return p.w.etcd.lockWriter
	}
	return nil
}

// onStep is called by the agent when a step begins or has ended.
func (p *promises) onStep(by *process, step policy.Step, done bool) {
	w := p.w
	w.mu.Lock()
	defer w.mu.Unlock()
	if done {
		w.counts.Steps++
		p.noteStop(by.host, step)
		w.event(by.host, eventStep, uint64(len(step.Kind)), "step ended: %s", step)
		return
	}
	w.event(by.host, eventStep, uint64(len(step.Kind)), "step begins: %s", step)
	p.checkRepetition(by, step)
	p.checkStepByPlan(by, step)
	if step.Kind == policy.StepLeaderStepsDown {
		p.beforeTransfer(by, step)
	}
	if !withoutLock(step.Kind) && p.lockOwner() != by {
		p.breach("P5", by.host, fmt.Sprintf("%s is begun by an agent that does not hold the lock", step.Kind))
	}
	if step.Kind == policy.StepRollBack && step.Outcome == policy.HealthLost && by.host.disk.state == probeDead &&
		w.now()-by.host.disk.since > p.staleness() {
		p.breach("P6", by.host, "a join is rolled back because the health state of its host is unknown")
	}
}

// withoutLock reports whether a step needs no lock. The list is deliberately independent of the policy's declarations,
// which a test compares with it. Every other step, even a new one, needs the lock.
func withoutLock(kind policy.StepKind) bool {
	switch kind {
	case policy.StepTakeLock, policy.StepReleaseLock, policy.StepWriteEnv, policy.StepStartUnit, policy.StepStopUnit,
		policy.StepFinishBootstrap, policy.StepLeaderStepsDown,
		// during a NOSPACE alarm, no agent can take the lock
		policy.StepClaimPermit, policy.StepWritePermits, policy.StepCompact, policy.StepLeadElsewhere,
		policy.StepDefragmentOnline, policy.StepDisarmNoSpace,
		policy.StepStopForRecovery, policy.StepCopyData, policy.StepPlaceCopy, policy.StepLayAside,
		policy.StepEndRecovery: // during a recovery, there may be no etcd in which to take the lock
		return true
	}
	return false
}

// checkRepetition checks that an agent does not begin the same step repeatedly without a pause. If a step has no
// effect, the agent has to wait.
func (p *promises) checkRepetition(by *process, step policy.Step) {
	before, now := p.lastSteps[by], p.w.now()
	next := repeatedStep{step: step, last: now, times: 1}
	if step == before.step && now-before.last < time.Second {
		next.times += before.times
	}
	p.lastSteps[by] = next
	if next.times == maxRepetitions {
		p.breach("liveness", by.host, fmt.Sprintf("%s is begun repeatedly without effect", step.Kind))
	}
}

// afterRound is called by the agent after every round.
func (p *promises) afterRound(by *process, d policy.Decision, v health.Assessment) {
	w := p.w
	w.mu.Lock()
	defer w.mu.Unlock()
	w.counts.Rounds++
	w.event(by.host, eventRound, uint64(len(d.Step.Kind))<<8|uint64(v.State), "")
	if d.Step.Kind == policy.StepNone && len(d.Reasons) == 0 {
		p.breach("P8", by.host, "a decision has neither a step nor a reason")
	}
	p.checkSlowLeader(by, v)
	p.noteHealth(by.host, v.State)
}

// beforeTxn checks a write of quorumd's own records as it is applied.
func (p *promises) beforeTxn(by *process, req *pb.TxnRequest) {
	w := p.w
	for _, c := range req.Compare {
		if holds, err := w.etcd.store.IsTrue(c); !holds || err != nil {
			return
		}
	}
	for _, op := range req.Success {
		if put := op.GetRequestPut(); put != nil {
			if strings.HasPrefix(string(put.Key), w.keys.Retirements()) {
				p.retiredChanged = w.now()
			}
			if string(put.Key) == w.keys.Size() {
				p.sizeChanged = w.now()
			}
			if strings.HasPrefix(string(put.Key), w.keys.Hosts()) {
				p.hostsChanged = w.now()
			}
			switch string(put.Key) {
			case w.keys.Op():
				p.checkOpWrite(by, put.Value)
			case w.keys.Lock():
				if owner := p.lockOwner(); owner != nil && owner != by {
					p.breach("P1", by.host, "the lock is taken while "+owner.host.name+" holds it")
				}
			}
		}
		if del := op.GetRequestDeleteRange(); del != nil && strings.HasPrefix(string(del.Key), w.keys.Retirements()) {
			p.retiredChanged = w.now()
		}
		if del := op.GetRequestDeleteRange(); del != nil && string(del.Key) == w.keys.Op() && !p.isRelease(req) {
			p.checkOpEnd(by)
		}
	}
}

// isRelease reports whether an operator deletes the operation record. An agent that ends an operation also writes to
// the history.
func (p *promises) isRelease(req *pb.TxnRequest) bool {
	return !slices.ContainsFunc(req.Success, func(op *pb.RequestOp) bool {
		put := op.GetRequestPut()
		return put != nil && strings.HasPrefix(string(put.Key), p.w.keys.History())
	})
}

// checkOpWrite checks a write of the operation record.
func (p *promises) checkOpWrite(by *process, value []byte) {
	w := p.w
	next, err := record.Decode[record.Op](value)
	if err != nil {
		p.breach("P1", by.host, "the operation record cannot be read: "+err.Error())
		return
	}
	before := p.currentOp()
	if before == nil {
		p.checkExclusive(by, next)
	}
	switch {
	case p.lockOwner() != by:
		p.breach("P5", by.host, "the operation record is written by an agent that does not hold the lock")
	case before != nil && before.Host != next.Host:
		p.breach("P1", by.host, fmt.Sprintf("the operation of %s is overwritten by one of %s", before.HostName,
			next.HostName))
	case before != nil && before.Kind == policy.KindCycle && before.Host != by.host.config.Host.ID:
		p.breach("P1", by.host, fmt.Sprintf("the operation that took %s down is written by another host",
			before.HostName))
	case before == nil && next.Phase == string(policy.PhaseBegun) && next.Host != by.host.config.Host.ID:
		p.breach("P1", by.host, "an agent begins an operation of another host")
	case before != nil && next.Host != by.host.config.Host.ID && before.Token != next.Token &&
		!strings.HasPrefix(next.Host, "member-"):
		grace := w.plan.timing().OrphanGrace
		if orphaned := p.orphanedFor(); orphaned < grace-w.plan.timing().Interval {
			p.breach("P1", by.host,
				fmt.Sprintf("the operation of %s is adopted after %s without its lock; the grace period is %s",
					before.HostName, orphaned, grace))
		}
	}
}

// orphanedFor returns how long no host has held the lock with the operation's token. The lock of a host that adopts the
// operation has a different token.
func (p *promises) orphanedFor() time.Duration { return p.w.now() - p.orphanedSince }

// checkOpEnd checks the end of an operation.
func (p *promises) checkOpEnd(by *process) {
	if p.lockOwner() != by {
		p.breach("P1", by.host, "the operation record is deleted by an agent that does not hold the lock")
	}
	if op := p.currentOp(); op != nil && op.Kind == policy.KindCycle && op.Host != by.host.config.Host.ID {
		p.breach("P1", by.host, fmt.Sprintf("the operation that took %s down is ended by another host",
			op.HostName))
	}
	p.checkReaddressEnd(by)
}

// currentOp returns the operation in flight, or nil if there is none or its record cannot be read. The value must not
// be changed.
func (p *promises) currentOp() *record.Op {
	kv := p.w.etcd.store.Get(p.w.keys.Op())
	switch {
	case kv == nil:
		return nil
	case kv.ModRevision == p.decodedAt:
		return p.decoded
	}
	p.decoded, p.decodedAt = nil, kv.ModRevision
	if op, err := record.Decode[record.Op](kv.Value); err == nil {
		p.decoded = &op
	}
	return p.decoded
}

// beforeChange checks a membership change when it is about to be sent.
func (p *promises) beforeChange(by *process, what string) {
	p.w.event(by.host, eventCall, uint64(len(what)), "sends %s", what)
	if p.w.now() < time.Duration(by.frozen.Load()) {
		return
	}
	op := p.currentOp()
	switch {
	case p.lockOwner() != by:
		p.breach("P5", by.host, what+" is sent by an agent that does not hold the lock")
	case p.justIntruded():
	case op == nil:
		p.breach("P1", by.host, what+" is sent without an operation")
	case what != "remove" && op.Host != by.host.config.Host.ID:
		p.breach("P1", by.host, what+" is sent during the operation of "+op.HostName)
	}
	if what == "remove" || what == "update" {
		return
	}
	p.checkFitness(by)
	if what == "add" {
		p.checkEjectedWait(by)
	}
	replaces := what == "promote" && op != nil && op.Kind == policy.KindReplace
	p.checkVotersUp(by, what, replaces)
	if m := p.w.etcd.memberOn(by.host); what == "promote" && m != nil && !m.learner {
		return // a retry: the promotion was applied, and its answer was lost
	}
	if replaces {
		p.checkVoteInPlace(by, op)
		return // a replacement need not wait, because on the whole it keeps the number of voters
	}
	p.checkSettled(by, what)
	if what == "promote" {
		p.checkOddVoters(by)
	}
}

// checkSettled checks that the last membership change is old enough. An operator's removal with etcdctl needs no lock,
// so an agent's view may not include it yet.
func (p *promises) checkSettled(by *process, what string) {
	since := p.w.now() - p.w.etcd.membersChangedAt
	if p.w.etcd.membersChangedAt == p.operatorRemovedAt && since < p.staleness() {
		return
	}
	if since < p.w.plan.timing().Settle {
		p.breach("P2", by.host, fmt.Sprintf("%s is sent %s after the last membership change", what, since))
	}
}

// checkOddVoters checks that the number of voters becomes even only if another host is ready to join, or if a voter's
// host is retired or was until just now.
func (p *promises) checkOddVoters(by *process) {
	w := p.w
	if len(w.etcd.voters())%2 == 0 || p.retires() {
		return
	}
	for _, pair := range w.etcd.store.Prefix(w.keys.Hosts()) {
		h, err := record.Decode[record.Host](pair.Value)
		fits := h.Role == string(policy.RoleSpare) || h.Role == string(policy.RoleStandby)
		recent := w.now()-w.etcd.membersChangedAt < p.staleness()
		if err == nil && h.ID != by.host.config.Host.ID && fits && (h.Waiting == "" || recent) {
			return
		}
	}
	if w.now()-p.hostsChanged > p.staleness() { // otherwise the agent may have observed an older record
		p.breach("P2", by.host, "the number of voters becomes even, and no other host is ready to join")
	}
}

// checkFitness checks that the disk and the clock of a host allow it to join.
func (p *promises) checkFitness(by *process) {
	w, d := p.w, by.host.disk
	since := w.now() - d.since
	switch {
	case d.state == probeDead && since > time.Minute:
		p.breach("P6", by.host, "a host joins with a disk whose state has been unknown for "+
			since.Round(time.Second).String())
	case (d.state == diskFails || d.state == diskHangs) && since > p.staleness():
		p.breach("P2", by.host, "a host joins although its disk is "+d.state.String())
	case d.slow() && since > 10*time.Minute:
		p.breach("P2", by.host, "a host joins although its disk is "+d.state.String())
	}
	if off := p.clockOff(by.host); off.Abs() > 2*w.plan.timing().ClockMaxOffset &&
		w.now()-time.Duration(by.host.wallSetAt.Load()) > time.Minute+p.staleness() {
		p.breach("P2", by.host, fmt.Sprintf("a host joins although its clock is off by %s", off))
	}
}

// clockOff returns the offset of a host's wall clock from the true time, or 0 if another host's clock is off or was set
// within the last minute.
func (p *promises) clockOff(h *host) time.Duration {
	for _, o := range p.w.hosts {
		if o != h && (o.wallOffset() != 0 || p.w.now()-time.Duration(o.wallSetAt.Load()) < time.Minute) {
			return 0
		}
	}
	return h.wallOffset()
}

// checkVotersUp checks that an addition or promotion is sent only while no voter is down, apart from downtime that the
// agent may not have observed yet. A replacement may be promoted while another voter, which is replaced next, is dead;
// beforePromote checks that this preserves the quorum. The unhealthy voter that is being replaced may be down, too.
func (p *promises) checkVotersUp(by *process, what string, replaces bool) {
	for _, m := range p.w.etcd.members {
		if m.learner {
			continue
		}
		down := p.w.now() - m.downAt
		dead := replaces && p.w.plan.Dead > 0 && down >= p.w.plan.Dead
		op := p.currentOp()
		replaced := op != nil && uint64(op.Replaces) == m.id && p.w.plan.Unhealthy > 0 && p.whyNotUnhealthy(m) == ""
		if m.downAt != 0 && down > p.staleness() && !dead && !replaced {
			p.breach("P2", by.host, fmt.Sprintf("%s is sent while voter %s has been down for %s", what, m.host.name,
				down.Round(time.Second)))
		}
	}
}

// faultTolerance returns how many more voters can fail. It is negative without a quorum.
func faultTolerance(voters, up int) int { return up - (voters/2 + 1) }

// countVoters returns the number of voters, and how many serve or did until just now.
func (p *promises) countVoters() (voters, up int) {
	for _, m := range p.w.etcd.members {
		if m.learner {
			continue
		}
		voters++
		if m.downAt == 0 || p.w.now()-m.downAt < p.staleness() {
			up++
		}
	}
	return voters, up
}

// overtaken reports whether a change is applied so long after it was sent that its sender, which has timed out, cannot
// have observed the current state of the cluster. etcd has no conditional membership changes, so such a change breaks a
// promise only if it costs the quorum.
func (p *promises) overtaken(after time.Duration) bool {
	return p.applyingLate || after > p.w.plan.timing().CallTimeout
}

// beforeAdd checks an addition when it is applied. after is the time since it was sent.
func (p *promises) beforeAdd(by *process, after time.Duration) {
	if !p.overtaken(after) && len(p.w.etcd.learners()) >= p.w.plan.maxLearners() {
		p.breach("P2", by.host, "a learner is added although etcd's limit is reached")
	}
}

// beforePromote checks a promotion when it is applied. after is the time since it was sent.
func (p *promises) beforePromote(by *process, id uint64, after time.Duration) {
	e := p.w.etcd
	m := e.find(id)
	if m == nil || !m.learner {
		return
	}
	voters, up := p.countVoters()
	serves := m.downAt == 0 || p.w.now()-m.downAt < p.staleness()
	then := up
	if serves {
		then++
	}
	switch {
	case m.host.config.Host.Role == config.RoleLearner:
		p.breach("P2", by.host, "a permanent learner is promoted")
	case p.overtaken(after):
	case !serves:
		p.breach("P2", by.host, "a learner is promoted although it has been down for "+
			(p.w.now()-m.downAt).Round(time.Second).String())
	case e.lastIndex() > m.applied+uint64(p.w.plan.timing().PromoteLag)+p.w.plan.Load*uint64(p.staleness()/time.Second):
		p.breach("P2", by.host, fmt.Sprintf("a learner is promoted although it is %d entries behind",
			e.lastIndex()-m.applied))
	case faultTolerance(voters, up) > 0 && faultTolerance(voters+1, then) <= 0:
		p.breach("P2", by.host, "a promotion lowers the fault tolerance to 0")
	}
	if faultTolerance(voters, up) >= 0 && faultTolerance(voters+1, then) < 0 {
		p.breach("P2", by.host, "a promotion costs the quorum")
	}
}

// beforeRemove checks the removal of a learner when it is applied. after is the time since it was sent. etcd removes a
// member of any role, so a late removal can remove a voter if a late promotion was applied before it.
func (p *promises) beforeRemove(by *process, id uint64, after time.Duration) {
	m := p.w.etcd.find(id)
	if m == nil || m.learner {
		if m != nil {
			p.checkStandbyRemoval(by, m)
		}
		return
	}
	if !p.overtaken(after) {
		p.breach("P2", by.host, "a voter is removed by a step for learners")
	}
	p.checkQuorumLeft(by, m)
}

// beforeRemoval checks the removal of a voter by a step for members of any role when the removal is applied.
func (p *promises) beforeRemoval(by *process, id uint64, after time.Duration) {
	m := p.w.etcd.find(id)
	if m == nil || m.learner {
		return
	}
	p.checkLeave(by, m, after)
	p.checkQuorumLeft(by, m)
}

// checkQuorumLeft checks that the removal of a voter does not cost the quorum.
func (p *promises) checkQuorumLeft(by *process, m *member) {
	voters, up := p.countVoters()
	left := up
	if m.downAt == 0 || p.w.now()-m.downAt < p.staleness() {
		left--
	}
	if faultTolerance(voters, up) >= 0 && faultTolerance(voters-1, left) < 0 {
		p.breach("P2", by.host, "a removal costs the quorum")
	}
}

// beforeStart checks a start of the unit.
func (p *promises) beforeStart(by *process) {
	h := by.host
	if p.checkStartByPlan(by) {
		return
	}
	m := h.etcd().find(h.data.member)
	switch {
	case h.program.result.State == hooks.Running && !h.program.asked:
		p.breach("P4", h, "an etcd that was stopped for a command is started while the command runs")
	case h.unit.state == inactive && m != nil && !m.learner && h.unit.byOperator && !h.unit.takenDown &&
		!p.restarting(h):
		p.breach("P4", h, "an etcd that an operator has stopped is started")
	case m != nil && !m.learner, h.unit.env["ETCD_INITIAL_CLUSTER_STATE"] == "new":
		return // neither the start of a voter nor a bootstrap needs the lock
	}
	if owned, ok := p.lockHeldAt[by]; m == nil && p.w.etcd.clusterID != 0 && h.data.member == 0 &&
		(!ok || p.w.now()-owned > p.staleness()) {
		p.breach("P5", h, "a learner's etcd is started by an agent that has not held the lock recently")
	}
}

// restarting reports whether an operation restarts the host's etcd. During a restart, the agent cannot distinguish its
// own stop from an operator's.
func (p *promises) restarting(h *host) bool {
	op := p.currentOp()
	return op != nil && op.Host == h.config.Host.ID && op.Work == string(policy.WorkRestart) &&
		op.Phase == string(policy.PhaseReady)
}

// beforeStop checks a stop of the unit.
func (p *promises) beforeStop(by *process) {
	if by.host.planInForce() != nil || p.leftBehind(by.host) {
		return // checkStepByPlan has already checked the step
	}
	if m := p.w.etcd.find(by.host.data.member); m != nil && !m.learner && p.w.now()-m.promotedAt > p.staleness() {
		p.checkVoterStop(by, m)
	}
}

// beforeMove checks a move of the data directory when it begins.
func (p *promises) beforeMove(by *process) {
	if !p.checkMoveByPlan(by) && p.lockOwner() != by {
		p.breach("P5", by.host, "data is moved aside by an agent that does not hold the lock")
	}
}

// checkMove checks a move of the data directory when it takes effect.
func (p *promises) checkMove(by *process) {
	h := by.host
	if m := p.w.etcd.find(h.data.member); m != nil && h.data.cluster == p.w.etcd.clusterID {
		p.breach("P3", h, "the data of a listed member is moved aside")
	}
	if h.unit.running {
		p.breach("P3", h, "data is moved aside while etcd runs on it")
	}
}

// afterApply checks the invariants, and records which process holds the lock. It is called after every request that
// etcd has applied.
func (p *promises) afterApply() {
	w := p.w
	op, owner := p.currentOp(), p.lockOwner()
	for _, holder := range []*process{p.lockHolder, owner} { // the holder before this request and after it
		if holder != nil {
			p.lockHeldAt[holder] = w.now()
		}
	}
	p.lockHolder = owner
	token := int64(0)
	if kv := w.etcd.store.Get(w.keys.Lock()); kv != nil {
		token = kv.CreateRevision
	}
	owned := op == nil || token != 0 && op.Token == token // a token of 0 means that the lock is free
	if owned || p.ownedOp {
		p.orphanedSince = w.now()
	}
	p.ownedOp = owned
	if p.op != nil && op == nil {
		w.event(nil, eventEtcd, 6, "the operation of %s has ended", p.op.HostName)
	}
	if (p.op == nil) != (op == nil) {
		p.opSince = w.now()
	}
	p.op = op
	if n := len(w.etcd.learners()); n > w.plan.maxLearners() {
		p.breach("P2", nil, fmt.Sprintf("there are %d learners", n))
	}
}
