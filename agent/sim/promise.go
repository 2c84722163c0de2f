// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"fmt"
	"slices"
	"strings"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"

	"github.com/quorumd/quorumd/agent/hooks"
	"github.com/quorumd/quorumd/agent/policy"
	"github.com/quorumd/quorumd/agent/record"
	"github.com/quorumd/quorumd/health"
)

// Breach is a broken promise of the design.
type Breach struct {
	Promise string // P1 to P8, or liveness
	Text    string
	At      time.Duration // since the world began
	Host    string        // whose agent broke it, if any
}

// Error returns the breach as one line.
func (b *Breach) Error() string {
	who := ""
	if b.Host != "" {
		who = " by " + b.Host
	}
	return fmt.Sprintf("%s is broken at %s%s: %s", b.Promise, clock(b.At), who, b.Text)
}

// promises watches everything that agents do. It checks against the true state of the world, not against what the
// agents have seen. Where an agent can notice a change only a round later, it allows for the greatest age of a round.
// Its methods are called with the world locked.
type promises struct {
	w     *world
	first *Breach
	late  bool // what is being applied left its sender long ago

	op           *record.Op    // as last observed
	opSince      time.Duration // since when there has been one, or none
	decoded      *record.Op    // the record as last decoded
	decodedAt    int64         // and its revision
	hostsChanged time.Duration // when a host record last changed
	orphan       time.Duration // since when the operation has been without its lock
	ownedOp      bool          // the operation's lock was held when last checked
	owner        *process      // who held the lock then
	owned        map[*process]time.Duration
	commands     map[string]bool // those that have begun
	taking       map[*process]taking
	byHand       time.Duration              // when an operator last removed a member
	intruded     time.Duration              // when an intruder last wrote
	repairs      map[uint64]time.Duration   // when the removal of each replaced voter was first sent
	leads        map[*process]time.Duration // since when a process leads that should not
	out          map[*host]ejected
	unhealthy    map[*host]unhealthyPeriod
	replaces     map[*host]uint64 // the member that each voting host replaces
}

// taking is the step that an agent takes, as decided, and how often it was begun without a second in between.
type taking struct {
	step  policy.Step
	last  time.Duration
	times int
}

// spinning is how often an agent may begin the very same step before it counts as spinning.
const spinning = 5

// stale returns how old an agent's information may be when it acts: a round's calls, its interval, and the step's own
// calls.
func (p *promises) stale() time.Duration {
	t := p.w.plan.timing()
	return 4*t.CallTimeout + t.Interval + 4*t.CallTimeout
}

// breach records a breach; only the first one counts.
func (p *promises) breach(promise string, h *host, text string) {
	name := ""
	if h != nil {
		name = h.name
	}
	p.w.happen(h, happenedFault, 99, "BREACH of %s: %s", promise, text)
	if p.first == nil {
		p.first = &Breach{promise, text, p.w.now(), name}
	}
}

// lockOwner returns the process that wrote the lock, or nil.
func (p *promises) lockOwner() *process {
	if p.w.etcd.store.Get(p.w.keys.Lock()) != nil {
		return p.w.etcd.holder
	}
	return nil
}

// stepping is called by the agent when a step begins or has ended.
func (p *promises) stepping(by *process, step policy.Step, done bool) {
	w := p.w
	w.mu.Lock()
	defer w.mu.Unlock()
	if done {
		w.counts.Steps++
		p.stopped(by.host, step)
		w.happen(by.host, happenedStep, uint64(len(step.Kind)), "has done %s", step)
		return
	}
	w.happen(by.host, happenedStep, uint64(len(step.Kind)), "begins %s", step)
	p.spins(by, step)
	p.byPlan(by, step)
	if step.Kind == policy.StepLeaderStepsDown {
		p.beforeTransfer(by, step)
	}
	if !withoutLock(step.Kind) && p.lockOwner() != by {
		p.breach("P5", by.host, fmt.Sprintf("%s is begun by an agent that does not hold the lock", step.Kind))
	}
	if step.Kind == policy.StepRollBack && step.Outcome == policy.HealthLost && by.host.disk.state == probeDead &&
		w.now()-by.host.disk.since > p.stale() {
		p.breach("P6", by.host, "a join is rolled back because nothing is known about its host")
	}
}

// withoutLock reports whether a step needs no lock. The list is deliberately independent of what the policy declares,
// which it checks. Every other step, also a new one, needs the lock.
func withoutLock(kind policy.StepKind) bool {
	switch kind {
	case policy.StepTakeLock, policy.StepReleaseLock, policy.StepWriteEnv, policy.StepStartUnit, policy.StepStopUnit,
		policy.StepFinishBootstrap, policy.StepLeaderStepsDown,
		policy.StepStopForRecovery, policy.StepCopyData, policy.StepPlaceCopy, policy.StepLayAside,
		policy.StepEndRecovery: // there is no etcd to lock with
		return true
	}
	return false
}

// spins checks that an agent does not begin the same step again and again at once: if a step changes nothing, the agent
// has to wait.
func (p *promises) spins(by *process, step policy.Step) {
	before, now := p.taking[by], p.w.now()
	next := taking{step: step, last: now, times: 1}
	if step == before.step && now-before.last < time.Second {
		next.times += before.times
	}
	p.taking[by] = next
	if next.times == spinning {
		p.breach("liveness", by.host, fmt.Sprintf("%s is begun repeatedly without effect", step.Kind))
	}
}

// rounded is called by the agent after every round.
func (p *promises) rounded(by *process, d policy.Decision, v health.Assessment) {
	w := p.w
	w.mu.Lock()
	defer w.mu.Unlock()
	w.counts.Rounds++
	w.happen(by.host, happenedRound, uint64(len(d.Step.Kind))<<8|uint64(v.State), "")
	if d.Step.Kind == policy.StepNone && len(d.Reasons) == 0 {
		p.breach("P8", by.host, "a decision has neither a step nor a reason")
	}
	p.slowLeaderStays(by, v)
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
			if strings.HasPrefix(string(put.Key), w.keys.Hosts()) {
				p.hostsChanged = w.now()
			}
			switch string(put.Key) {
			case w.keys.Op():
				p.writeOp(by, put.Value)
			case w.keys.Lock():
				if owner := p.lockOwner(); owner != nil && owner != by {
					p.breach("P1", by.host, "the lock is taken while "+owner.host.name+" holds it")
				}
			}
		}
		if del := op.GetRequestDeleteRange(); del != nil && string(del.Key) == w.keys.Op() && !p.released(req) {
			p.endOp(by)
		}
	}
}

// released reports whether an operator deletes the operation record: an agent also writes the end into the history.
func (p *promises) released(req *pb.TxnRequest) bool {
	return !slices.ContainsFunc(req.Success, func(op *pb.RequestOp) bool {
		put := op.GetRequestPut()
		return put != nil && strings.HasPrefix(string(put.Key), p.w.keys.History())
	})
}

// writeOp checks a write of the operation record.
func (p *promises) writeOp(by *process, value []byte) {
	w := p.w
	next, err := record.Decode[record.Op](value)
	if err != nil {
		p.breach("P1", by.host, "the record of an operation cannot be read: "+err.Error())
		return
	}
	before := p.currentOp()
	if before == nil {
		p.exclusive(by, next)
	}
	switch {
	case p.lockOwner() != by:
		p.breach("P5", by.host, "the record of an operation is written by an agent that does not hold the lock")
	case before != nil && before.Host != next.Host:
		p.breach("P1", by.host, fmt.Sprintf("the operation of %s is overwritten by one of %s", before.HostName,
			next.HostName))
	case before != nil && before.Kind == policy.KindCycle && before.Host != by.host.config.Host.ID:
		p.breach("P1", by.host, fmt.Sprintf("the operation that took %s down is written by another host",
			before.HostName))
	case before == nil && next.Phase == string(policy.PhaseBegun) && next.Host != by.host.config.Host.ID:
		p.breach("P1", by.host, "an operation of another host is begun")
	case before != nil && next.Host != by.host.config.Host.ID && before.Token != next.Token &&
		!strings.HasPrefix(next.Host, "member-"):
		grace := w.plan.timing().OrphanGrace
		if orphaned := p.orphanedFor(); orphaned < grace-w.plan.timing().Interval {
			p.breach("P1", by.host,
				fmt.Sprintf("the operation of %s is taken over after %s without its lock, the grace is %s",
					before.HostName, orphaned, grace))
		}
	}
}

// orphanedFor returns how long the operation has been without the lock of its token, not counting the lock of the host
// that adopts it.
func (p *promises) orphanedFor() time.Duration { return p.w.now() - p.orphan }

// endOp checks the end of an operation.
func (p *promises) endOp(by *process) {
	if p.lockOwner() != by {
		p.breach("P1", by.host, "the record of an operation is deleted without the lock")
	}
	if op := p.currentOp(); op != nil && op.Kind == policy.KindCycle && op.Host != by.host.config.Host.ID {
		p.breach("P1", by.host, fmt.Sprintf("the operation that took %s down is ended by another host",
			op.HostName))
	}
}

// currentOp returns the operation in flight, or nil. The value must not be changed.
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
	p.w.happen(by.host, happenedCall, uint64(len(what)), "sends %s", what)
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
	if what == "remove" {
		return
	}
	p.fitness(by)
	if what == "add" {
		p.clean(by)
	}
	replaces := what == "promote" && op != nil && op.Kind == policy.KindReplace
	p.margin(by, what, replaces)
	if m := p.w.etcd.on(by.host); what == "promote" && m != nil && !m.learner {
		return // its promotion has taken effect and the answer was lost: the retry changes nothing
	}
	if replaces {
		p.replacesUnhealthy(by, op)
		return // a standby follows at once, so the number of voters does not change
	}
	p.settling(by, what)
	if what == "promote" {
		p.odd(by)
	}
}

// settling checks that the last change is old enough. A change that an operator makes with etcdctl takes no lock, and
// an agent that has just looked cannot know of it.
func (p *promises) settling(by *process, what string) {
	since := p.w.now() - p.w.etcd.changed
	if p.w.etcd.changed == p.byHand && since < p.stale() {
		return
	}
	if since < p.w.plan.timing().Settle {
		p.breach("P2", by.host, fmt.Sprintf("%s is sent %s after the last change of membership", what, since))
	}
}

// odd checks that the number of voters becomes even only if another host follows.
func (p *promises) odd(by *process) {
	w := p.w
	if len(w.etcd.voters())%2 == 0 {
		return
	}
	for _, pair := range w.etcd.store.Prefix(w.keys.Hosts()) {
		h, err := record.Decode[record.Host](pair.Value)
		fits := h.Role == string(policy.RoleSpare) || h.Role == string(policy.RoleStandby)
		recent := w.now()-w.etcd.changed < p.stale()
		if err == nil && h.ID != by.host.config.Host.ID && fits && (h.Waiting == "" || recent) {
			return
		}
	}
	if w.now()-p.hostsChanged > p.stale() { // the agent may have seen the state before the last change
		p.breach("P2", by.host, "the number of voters becomes even, and no other host is ready to join")
	}
}

// fitness checks that a host may take a step towards membership.
func (p *promises) fitness(by *process) {
	w, d := p.w, by.host.disk
	since := w.now() - d.since
	switch {
	case d.state == probeDead && since > time.Minute:
		p.breach("P6", by.host, "a host joins with a disk whose state has been unknown for "+
			since.Round(time.Second).String())
	case (d.state == diskFails || d.state == diskHangs) && since > p.stale():
		p.breach("P2", by.host, "a host joins whose disk is "+d.state.String())
	case d.slow() && since > 10*time.Minute:
		p.breach("P2", by.host, "a host joins whose disk is "+d.state.String())
	}
	if off := p.clockOff(by.host); off.Abs() > 2*w.plan.timing().ClockMaxOffset &&
		w.now()-time.Duration(by.host.wallAt.Load()) > time.Minute+p.stale() {
		p.breach("P2", by.host, fmt.Sprintf("a host joins whose clock is off by %s", off))
	}
}

// clockOff returns the offset of a host's wall clock from the true time. It is 0 if most of the others' clocks are off.
func (p *promises) clockOff(h *host) time.Duration {
	for _, o := range p.w.hosts {
		if o != h && (o.off() != 0 || p.w.now()-time.Duration(o.wallAt.Load()) < time.Minute) {
			return 0
		}
	}
	return h.off()
}

// margin is an independent quorum calculation: n voters need more than half of them, and an optional step is not taken
// while one of them has been down for longer than an agent needs to notice. A replacement may vote while another voter
// is dead, which is replaced next: [promises.beforePromote] checks what that does to the quorum.
func (p *promises) margin(by *process, what string, replaces bool) {
	for _, m := range p.w.etcd.members {
		if m.learner {
			continue
		}
		down := p.w.now() - m.downAt
		dead := replaces && p.w.plan.Dead > 0 && down >= p.w.plan.Dead
		if m.downAt != 0 && down > p.stale() && !dead {
			p.breach("P2", by.host, fmt.Sprintf("%s is sent while voter %s has been down for %s", what, m.host.name,
				down.Round(time.Second)))
		}
	}
}

// spare returns how many more voters may fail when so many are up.
func spare(voters, up int) int { return up - (voters/2 + 1) }

// upNow returns the number of voters, and how many serve.
func (p *promises) upNow() (voters, up int) {
	for _, m := range p.w.etcd.members {
		if m.learner {
			continue
		}
		voters++
		if m.downAt == 0 || p.w.now()-m.downAt < p.stale() {
			up++
		}
	}
	return voters, up
}

// overtaken reports whether a change is applied so long after it was sent that its sender cannot have seen the later
// state of the cluster. Its time was up, and etcd has no conditional membership changes. Only a lost quorum counts as
// harm then.
func (p *promises) overtaken(after time.Duration) bool {
	return p.late || after > p.w.plan.timing().CallTimeout
}

// beforeAdd checks an addition as it is applied, that long after it was sent.
func (p *promises) beforeAdd(by *process, after time.Duration) {
	if !p.overtaken(after) && len(p.w.etcd.learners()) > 0 {
		p.breach("P2", by.host, "a second learner is added")
	}
}

// beforePromote checks a promotion as it is applied, that long after it was sent.
func (p *promises) beforePromote(by *process, id uint64, after time.Duration) {
	e := p.w.etcd
	m := e.find(id)
	if m == nil || !m.learner {
		return
	}
	voters, up := p.upNow()
	serves := m.downAt == 0 || p.w.now()-m.downAt < p.stale()
	then := up
	if serves {
		then++
	}
	switch {
	case p.overtaken(after):
	case !serves:
		p.breach("P2", by.host, "a learner is promoted that has been down for "+
			(p.w.now()-m.downAt).Round(time.Second).String())
	case e.last() > m.applied+uint64(p.w.plan.timing().PromoteLag)+p.w.plan.Load*uint64(p.stale()/time.Second):
		p.breach("P2", by.host, fmt.Sprintf("a learner is promoted that is %d entries behind", e.last()-m.applied))
	case spare(voters, up) > 0 && spare(voters+1, then) <= 0:
		p.breach("P2", by.host, "a promotion lowers the fault tolerance to 0")
	}
	if spare(voters, up) >= 0 && spare(voters+1, then) < 0 {
		p.breach("P2", by.host, "a promotion has cost the quorum")
	}
}

// beforeRemove checks a removal as it is applied, that long after its sender has seen that the member is a learner.
// etcd removes a member of any role: a late removal finds a voter if an equally late promotion was applied before it.
func (p *promises) beforeRemove(by *process, id uint64, after time.Duration) {
	m := p.w.etcd.find(id)
	if m == nil || m.learner {
		if m != nil {
			p.standby(by, m)
		}
		return
	}
	if !p.overtaken(after) {
		p.breach("P2", by.host, "a voter is removed by a step for learners")
	}
	p.leavesQuorum(by, m)
}

// beforeRemoval checks a removal requested by an operator, as it is applied.
func (p *promises) beforeRemoval(by *process, id uint64, _ time.Duration) {
	m := p.w.etcd.find(id)
	if m == nil || m.learner {
		return
	}
	p.leavesQuorum(by, m)
}

// leavesQuorum checks that the others have a quorum without the removed voter, if there was one with it.
func (p *promises) leavesQuorum(by *process, m *member) {
	voters, up := p.upNow()
	left := up
	if m.downAt == 0 || p.w.now()-m.downAt < p.stale() {
		left--
	}
	if spare(voters, up) >= 0 && spare(voters-1, left) < 0 {
		p.breach("P2", by.host, "a removal has cost the quorum")
	}
}

// beforeStart checks a start of the unit.
func (p *promises) beforeStart(by *process) {
	h := by.host
	if p.startByPlan(by) {
		return
	}
	m := h.etcd().find(h.data.member)
	switch {
	case h.program.result.State == hooks.Running && !h.program.asked:
		p.breach("P4", h, "an etcd is started while the command runs that it was stopped for")
	case h.unit.state == inactive && m != nil && !m.learner && h.unit.stoppedBy == "operator" && !h.unit.takenDown &&
		!p.restarting(h):
		p.breach("P4", h, "an etcd that an operator has stopped is started")
	case m != nil && !m.learner, h.unit.env["ETCD_INITIAL_CLUSTER_STATE"] == "new":
		return // a returning voter costs no fault tolerance
	}
	if owned, ok := p.owned[by]; m == nil && p.w.etcd.clusterID != 0 && h.data.member == 0 &&
		(!ok || p.w.now()-owned > p.stale()) {
		p.breach("P5", h, "a learner's etcd is started by an agent that has not held the lock for a while")
	}
}

// restarting reports whether an agent is restarting its etcd: it cannot know whether the stop in between was its own.
func (p *promises) restarting(h *host) bool {
	op := p.currentOp()
	return op != nil && op.Host == h.config.Host.ID && op.Work == string(policy.WorkRestart) &&
		op.Phase == string(policy.PhaseReady)
}

// beforeStop checks a stop of the unit.
func (p *promises) beforeStop(by *process) {
	if by.host.planInForce() != nil || p.leftBehind(by.host) {
		return // byPlan has checked it
	}
	if m := p.w.etcd.find(by.host.data.member); m != nil && !m.learner && p.w.now()-m.promoted > p.stale() {
		p.takenDown(by, m)
	}
}

// beforeMove checks a move of the data directory when it begins.
func (p *promises) beforeMove(by *process) {
	if !p.moveByPlan(by) && p.lockOwner() != by {
		p.breach("P5", by.host, "data is moved aside by an agent that does not hold the lock")
	}
}

// move checks it when it happens.
func (p *promises) move(by *process) {
	h := by.host
	if m := p.w.etcd.find(h.data.member); m != nil && h.data.cluster == p.w.etcd.clusterID {
		p.breach("P3", h, "the data of a listed member is moved aside")
	}
	if h.unit.process {
		p.breach("P3", h, "data is moved aside while etcd runs on it")
	}
}

// afterEffect checks what must always hold. It is called after everything that etcd has applied.
func (p *promises) afterEffect() {
	w := p.w
	op, owner := p.currentOp(), p.lockOwner()
	for _, holder := range []*process{p.owner, owner} { // before this effect, and after it
		if holder != nil {
			p.owned[holder] = w.now()
		}
	}
	p.owner = owner
	token := int64(0)
	if kv := w.etcd.store.Get(w.keys.Lock()); kv != nil {
		token = kv.CreateRevision
	}
	owned := op == nil || token != 0 && op.Token == token // without a token in the record, the lock must be free
	if owned || p.ownedOp {
		p.orphan = w.now()
	}
	p.ownedOp = owned
	if p.op != nil && op == nil {
		w.happen(nil, happenedEtcd, 6, "the operation of %s has ended", p.op.HostName)
	}
	if (p.op == nil) != (op == nil) {
		p.opSince = w.now()
	}
	p.op = op
	if n := len(w.etcd.learners()); n > 1 {
		p.breach("P2", nil, fmt.Sprintf("there are %d learners", n))
	}
}
