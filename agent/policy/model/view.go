// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package model

import (
	"time"

	"github.com/quorumd/quorumd/agent/policy"
	"github.com/quorumd/quorumd/health"
)

// observedHost is what an agent observes of a host.
type observedHost struct {
	list, named, progress, live uint8
	present                     uint8
	health                      uint8
	ready                       uint8
	requests                    uint8
	inOperation                 uint8
}

// observation holds everything on which a decision may depend. A view is built only from an observation, so decisions
// are cached by observation.
type observation struct {
	n, self            uint8
	reachable          uint8
	leaderless         uint8 // so many voters answer without a leader that the others cannot be a quorum
	hosts              [maxHosts]observedHost
	unit, data         uint8
	recorded           uint8 // see host.recorded
	dataLost           uint8
	env                uint8
	health             uint8
	backoff            uint8
	request            uint8
	pause              uint8
	alarm              uint8
	stable             uint8
	idleTime           uint8
	learnerStalled     uint8
	learnerMoved       uint8
	sinceWrite         uint8
	stepFailed         uint8
	lockHeld, lockMine uint8
	op                 uint8
	opHost             uint8
	opLeft             uint8
	opForged           uint8
	opPhase            uint8
	opStandby          uint8
	opID               uint8
	opToken            uint8
	opBoot             uint8
	opOld              uint8
	orphan             uint8

	hostRequest
	leads, opCycle, opRestarted, servedLong uint8

	writes  uint8 // the write measurements that the other voters publish
	noReads uint8 // no read returned in time, so the view shows only the local state of this host's member, which leads

	ejection uint8

	learnerState
	upgradeState
	urls urlsSeen

	replacementState
	resizeState
	removalState // without the removal requests of other hosts
	transferState
}

// observe returns what host h observes of the world now.
func (w *world) observe(h int) observation {
	own := &w.hosts[h]
	s := observation{
		n: uint8(w.n), self: uint8(h), reachable: bit(w.reaches(h)),
		hostRequest: own.hostRequest, unit: own.unit, data: own.data, stepFailed: own.stepFailed,
		recorded: own.recorded, health: own.health, backoff: own.backoff, request: own.request, env: own.env,
		dataLost: bit(own.dataLost()),
	}
	if own.down != 0 {
		s.unit = inactive
	}
	s.startGuard = 0 // no decision depends on the start guard
	s.leaderless = bit(w.seesLeaderless(h))
	s.removalState, s.learnerState, s.upgradeState = w.removalSeen(h), w.learnerState, w.upgradeState
	s.transferState = w.transferSeen(h)
	if s.urls = w.urlsSeen(h); s.reachable == 0 {
		return s
	}
	for i := range w.n {
		g := &w.hosts[i]
		s.hosts[i] = observedHost{
			list: g.list, named: g.named, progress: g.progress, health: g.health,
			live:    bit(w.answers(i) && (i == h || own.blind == 0)),
			present: bit(i == h || w.present(i)), ready: bit(w.ready(i)),
			requests: bit(g.work != noWork && !w.requestOver(i)), inOperation: bit(g.inOperation()),
		}
		if s.hosts[i].live == 0 {
			s.hosts[i].progress = behind
		}
	}
	s.dead, s.witness, s.resized, s.retired = w.dead, w.witness, w.resized, w.retired
	s.successor = w.successor
	if own.list == unlisted {
		s.ejection = own.ejection
	}
	s.alarm, s.pause, s.stable, s.idleTime, s.learnerStalled = w.alarm, w.pause, w.stable, w.idleTime, w.learnerStalled
	if w.joining(h) {
		s.learnerMoved, s.sinceWrite = w.learnerMoved, w.sinceWrite
	}
	s.lockHeld, s.lockMine = bit(w.lock >= 0), bit(w.owns(h))
	if w.op != 0 {
		s.op, s.opHost, s.opLeft, s.opPhase, s.opStandby = 1, w.opHost, w.opLeft, w.opPhase, w.opStandby
		s.opForged, s.opID, s.opToken, s.opBoot, s.opOld, s.orphan = w.opForged, w.opID, w.opToken, w.opBoot, w.opOld,
			w.orphan
		s.replacementState = w.replacementState
		s.opCycle, s.opLeave, s.servedLong = w.opCycle, w.opLeave, w.servedLong
		s.opRestarted = w.opRestarted & bit(w.cycles(h) && own.unit == active)
	}
	return s
}

func bit(b bool) uint8 {
	if b {
		return 1
	}
	return 0
}

const (
	clusterID = 0xc1
	tokenNow  = 7
	tokenPast = 3
	goneID    = 0xdead
	mount     = "/"              // always mounted
	ages      = 1000 * time.Hour // longer than every limit
)

func memberID(i int) uint64 { return uint64(i) + 1 }

// hostName returns the string that serves as the name, the ID and the peer URL of a host.
func hostName(i int) string { return "ABCDE"[i : i+1] }

func etcdVersion() policy.Version { return policy.Version{Major: 3, Minor: 6, Patch: 16} }

func long(b uint8) time.Duration {
	if b != 0 {
		return ages
	}
	return 0
}

// limits returns the policy's limits. Their values do not matter, because a duration in a view is 0 or longer than
// every limit or, if a decision has two limits, between them.
func limits() policy.Limits {
	return policy.Limits{
		Settle: 6 * time.Second, Cooldown: time.Minute, PromoteStable: time.Minute, SteadyLag: 30 * time.Second,
		PromoteLag: 100, LearnerStall: 5 * time.Minute, LearnerMax: 2 * time.Hour, OrphanGrace: time.Minute,
		LockTTL: 30 * time.Second, StartRetry: 6 * time.Second, ClockOffset: 5 * time.Second,
		TransferTimeout: 30 * time.Second, TransferInterval: time.Minute, ReturnStable: 10 * time.Second,
		ReturnMax: 40 * time.Second,
		CleanFor:  10 * time.Minute,
	}
}

// rank is the position of the deciding host among hosts that are otherwise equal.
type rank uint8

const (
	selfFirst rank = iota
	selfLast
	byNumber
	ranks
)

// view builds the view for an observation.
func (s *observation) view(target policy.Target, r rank) policy.View {
	if s.noReads != 0 {
		return s.viewWithoutReads(target, r)
	}
	me := hostName(int(s.self))
	v := policy.View{
		Self: policy.Self{
			ID: me, Name: me, PeerURL: s.peerURL(int(s.self)), Mode: policy.Manage, Drives: true, Etcd: etcdVersion(),
			DataMount: mount, Learner: s.isPermanent(int(s.self)), MaxLearners: int(max(s.limit, 1)),
		},
		Target: target,
		Limits: limits(),
		Unit: policy.Unit{
			State: unitState(s.unit), Since: ages, Ran: s.ran(),
			SinceStart: policy.Never,
		},
		Data:      s.dataView(),
		Health:    policy.Health{State: healthState(s.health), Qualified: true, Text: healthState(s.health).String()},
		Clock:     policy.Clock{Known: true},
		Bootstrap: policy.Bootstrap{Requested: s.request != 0},
		Cluster:   policy.Cluster{Reachable: s.reachable != 0},
	}
	if s.health == slow {
		v.Health.SlowWrites, v.Health.Writes, v.Health.Habitual = true, slowMean, s.writes == fasterThanHabit
		v.Health.AsUsual = s.writes == fasterAsUsual
		v.Health.Figures = policy.WriteFigures{P50: slowMean, P90: slowMean}
	}
	v.Unit.EnvReady = s.env == environment(v)
	if s.health == clockWrong {
		v.Clock.Offset = time.Hour
	}
	if s.backoff != 0 {
		v.Backoff = time.Minute
	}
	if s.ejection != 0 {
		v.Ejections = policy.Ejections{Times: 1, HealthyFor: long(bit(s.ejection == ejectedHealthy))}
	}
	switch lost := s.dataLost != 0; {
	case lost:
		v.Self.MemberID, v.Self.ClusterID, v.Bootstrap.Done = memberID(int(s.self)), clusterID, true
		v.Self.LostID = v.Self.MemberID * uint64(s.recorded)
	case s.recorded != 0:
		v.Self.MemberID, v.Self.ClusterID, v.Bootstrap.Done = v.Data.MemberID, clusterID, true
	}
	if s.leads != 0 {
		v.LeadershipTransfers = policy.LeadershipTransfers{LeadsFor: ages, UnfitFor: ages, LastFor: ages}
	}
	if s.stepFailed != 0 && s.opCycle == 0 {
		v.Failed = policy.FailedStep{Kind: policy.StepPromote, Text: "it timed out"}
		v.PromotionPending = true
	}
	s.cycleView(&v)
	v.Removal, v.TransferAsked = s.removalView(), s.transferView()
	if s.reachable == 0 {
		v.Cluster.Error = "no voter answers"
		if s.recorded|s.dataLost != 0 {
			v.Cluster.ExpectedID = clusterID
		}
		if s.leaderless != 0 {
			v.Cluster.Leaderless, v.Cluster.LeaderlessFor = "B answers, but has no leader", ages
		}
		return v
	}
	v.Cluster, v.HostsFresh = s.clusterView(), true
	v.Retired = s.retiredView()
	// idleTime 1 is longer than the cooldown, and shorter than the time for which a queued host waits for the hosts
	// ahead.
	v.IdleFor = [...]time.Duration{0, 90 * time.Second, ages}[s.idleTime]
	v.Hosts = s.hostsView(r)
	s.readdressView(&v)
	v.Self.Conflict = policy.Conflict(v)
	v.Lock = policy.Lock{Known: true}
	if s.lockHeld != 0 {
		v.Lock = policy.Lock{Known: true, Held: true, Mine: s.lockMine != 0, Token: tokenNow, Holder: "other"}
		v.Lock.ValidFor = long(s.lockMine)
	}
	if s.op != 0 {
		v.Op = s.opView()
	}
	if s.pause != 0 {
		v.Pause = &policy.Pause{By: "root", Reason: "testing"}
	}
	return v
}

// environment returns the environment that etcd needs at its next start.
func environment(v policy.View) uint8 {
	if policy.EnvironmentOf(v) == policy.EnvironmentNew {
		return newEnv
	}
	return joinEnv
}

func (s *observation) dataView() policy.Data {
	d := policy.Data{State: policy.DataEmpty, Free: 1 << 40, FreeKnown: true, Mount: mount}
	switch s.data {
	case current:
		d.State, d.ClusterID, d.MemberID = policy.DataMember, clusterID, memberID(int(s.self))
	case old:
		d.State, d.ClusterID, d.MemberID = policy.DataMember, clusterID, goneID
	case remains:
		d.State = policy.DataRemains
	}
	return d
}

func (s *observation) clusterView() policy.Cluster {
	c := policy.Cluster{
		Reachable: true, Listed: true, Fresh: true, ID: clusterID, ExpectedID: clusterID, StableFor: long(s.stable),
		DBSize: 1 << 20, Intact: true, Roomy: true,
	}
	led, voters := false, 0
	for _, g := range s.hosts[:s.n] {
		voters += int(bit(g.list == voter))
	}
	for i, g := range s.hosts[:s.n] {
		if g.list == unlisted {
			continue
		}
		m := policy.Member{
			ID: memberID(i), PeerURL: s.peerURL(i), Learner: g.list == learner, Live: g.live != 0,
			ThinksLearner: g.list == learner, LagKnown: g.live != 0, LiveFor: long(g.live), DownFor: long(1 - g.live),
		}
		if g.live != 0 {
			m.Version = etcdVersion()
		}
		if g.named != 0 {
			m.Name = hostName(i)
		}
		m.Fsyncs = policy.Fsyncs{Known: true, P99: time.Second, SlowFor: long(s.confirmedUnhealthy(i))}
		m.AgentGoneFor = long(bit(int(s.dead) == i+1) &^ bit(s.witness != 0) &^ g.present)
		if g.list == voter {
			m.Leader = !led && m.Live && (voters == 1 || (s.leads != 0) == (i == int(s.leadershipOf())))
			led = led || m.Leader
			m.SteadyFor = long(g.live)
			m.DownFor = long((s.learnerStalled | bit(s.removalNames(i)) | s.confirmedUnhealthy(i) |
				bit(s.mayBeCalledOff()) | s.urls.opVerify&bit(s.opOld > 0)) & (1 - g.live))
			if i == int(s.self) && s.ownCycle() {
				m.SteadyFor, m.LiveFor = long(s.servedLong), long(s.servedLong)
			}
		} else {
			m.Standby = g.named != 0 && !s.joins(i) && (i != int(s.self) || s.data == current)
			s.learnerView(&m, g)
		}
		s.limitView(&m, i, g)
		c.Members = append(c.Members, m)
	}
	return c
}

func (s *observation) learnerView(m *policy.Member, g observedHost) {
	if g.live != 0 && g.progress == behind {
		m.Lag = 1000
	}
	m.SteadyFor, m.LiveFor = long(bit(g.progress == steady)), long(bit(g.progress == steady))
	m.StalledFor, m.StillFor = long(s.learnerStalled), long(1-s.learnerMoved)
	m.DownFor = long(s.learnerStalled & (1 - g.live))
	m.BehindFor = long(s.learnerStalled & bit(m.Lag > 0))
}

func (s *observation) hostsView(r rank) []policy.Host {
	var list []policy.Host
	for i, g := range s.hosts[:s.n] {
		if g.present == 0 {
			continue
		}
		h := policy.Host{
			ID: hostName(i), Name: hostName(i), PeerURL: s.peerURL(i), Role: s.role(i), Health: healthState(g.health),
			Qualified: true, Manage: true, Learner: s.isPermanent(i), P99: 2 * time.Millisecond,
			NoStandbys:  s.isUnwilling(i),
			Answered:    i != int(s.self),
			InOperation: g.inOperation != 0, Own: i == int(s.self), Sees: s.connectionReports(i),
			UnhealthySince: policy.UnhealthySince{For: long(bit(g.health == slow))}, Strained: g.health == slow ||
				g.health == clockWrong,
			Writes: s.writesOf(i),
		}
		if g.health == clockWrong && s.confirmedUnhealthy(i) != 0 {
			h.Health, h.Recovers = health.Slow, true
		}
		if g.live == 0 && s.witness != tardy {
			h.UnhealthySince.HangsFor = h.UnhealthySince.For
		}
		if s.urls.opReaddress != 0 && s.ownCycle() {
			h.Answered, h.Sees = s.urls.answered[i], append(h.Sees, s.reachReports(i)...)
		}
		if s.opReplace != 0 {
			h.Answered = s.opReported != 0 && (i != int(s.self) || s.opHost == s.self)
		}
		if g.ready == 0 {
			h.Waiting = policy.HealthBad // no decision depends on the code
		}
		switch {
		case i != int(s.self):
		case r == selfFirst:
			h.P99 = time.Millisecond
		case r == selfLast:
			h.P99 = 3 * time.Millisecond
		}
		if g.requests != 0 {
			h.Wants, h.AskedAt = policy.WorkMaintenance, askedAt(i == int(s.self), r)
		}
		list = append(list, h)
	}
	return list
}

func (s *observation) role(i int) policy.Role {
	g := s.hosts[i]
	switch {
	case g.list == voter:
		return policy.RoleVoter
	case s.joins(i):
		return policy.RoleJoining
	case g.list == learner && g.named != 0 && s.isPermanent(i):
		return policy.RoleLearner
	case g.list == learner && g.named != 0:
		return policy.RoleStandby
	}
	return policy.RoleSpare
}

// joins reports whether a host is joining. A standby ignores the record of a join that it did not begin.
func (s *observation) joins(i int) bool {
	g := s.hosts[i]
	return s.op != 0 && s.opLeft|s.opCycle|s.opRemove|s.opLeave == 0 && int(s.opHost) == i &&
		s.opReplace&s.opStandby == 0 && (s.opForged == 0 || g.list != learner || g.named == 0)
}

func (s *observation) opView() *policy.Op {
	if s.opCycle != 0 {
		return s.cycleOp()
	}
	if s.opRemove != 0 {
		return s.removalOp()
	}
	if s.opLeave != 0 {
		return s.setTokenAndID(s.leaveOp())
	}
	if s.opReplace != 0 {
		return s.setTokenAndID(s.replacementOp())
	}
	name := hostName(int(s.opHost))
	op := &policy.Op{
		Kind: policy.KindJoin, Host: name, HostName: name, PeerURL: s.peerURL(int(s.opHost)), Target: policy.RoleVoter,
		Phase: opPhase(s.opPhase),
		Token: tokenPast, SameBoot: s.opBoot != 0 || s.opHost != s.self, Elapsed: long(s.opOld),
		OrphanedFor: long(s.orphan),
		WrittenFor:  [...]time.Duration{ages, time.Second, time.Minute}[s.sinceWrite],
	}
	switch {
	case s.opStandby != 0 && s.isPermanent(int(s.opHost)):
		op.Target = policy.RoleLearner
	case s.opStandby != 0:
		op.Target = policy.RoleStandby
	}
	if s.opLeft != 0 {
		op.Host, op.HostName, op.PeerURL, op.Target = "member-"+name, "a learner", "", ""
	}
	if s.opForged != 0 && s.opID == 2 {
		op.PeerURL = ""
	}
	s.setTokenAndID(op)
	if s.opPhase == phaseRollback {
		op.Outcome, op.Reason = policy.Orphaned, string(policy.Orphaned)+": it was aborted"
		if s.opLeft&s.opStandby != 0 {
			op.Outcome = policy.StandbyLost
		}
	}
	return op
}

// setTokenAndID sets the token and the member ID of an operation.
func (s *observation) setTokenAndID(op *policy.Op) *policy.Op {
	if s.opToken != 0 {
		op.Token = tokenNow
	}
	switch s.opID {
	case 1:
		op.MemberID = memberID(int(s.opHost))
	case 2:
		op.MemberID = goneID
	}
	return op
}

func unitState(u uint8) policy.UnitState {
	return [...]policy.UnitState{
		policy.UnitInactive, policy.UnitFailed, policy.UnitActivating, policy.UnitActive,
		policy.UnitDeactivating, policy.UnitDeactivating, policy.UnitInactive,
	}[u]
}

func healthState(f uint8) health.State {
	return [...]health.State{health.OK, health.Slow, health.Unknown, health.OK}[f]
}

func opPhase(p uint8) policy.OpPhase {
	return [...]policy.OpPhase{
		policy.PhaseBegun, policy.PhaseAdded, policy.PhaseStarted, policy.PhasePromoted, policy.PhaseRollback,
		policy.PhaseReady, policy.PhaseDown, policy.PhaseBack,
	}[p]
}
