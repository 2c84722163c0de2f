// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package model

import (
	"slices"
	"time"

	"github.com/quorumd/quorumd/agent/policy"
	"github.com/quorumd/quorumd/health"
)

// Mistake is a mistake seeded into the policy, as a wrong view or a wrong decision, or into the protocol of lock and
// agent. The exploration must find it.
type Mistake struct {
	Name    string
	Promise string // the broken promise, as in Breach
	breach  breach
	rules   rules
	scope   func(sc *Scenario) // changes the default scope, in which one host joins one voter without a fault
}

// Scenario returns the smallest scope in which the mistake has an effect.
func (m Mistake) Scenario() Scenario {
	sc := Scenario{Name: m.Name, Hosts: 2, Voters: 1, Target: policy.Target{Voters: 3, Standbys: 1}}
	if m.scope != nil {
		m.scope(&sc)
	}
	return sc
}

// faults returns a scope of three hosts with n faults of these classes.
func faults(n int, class Faults) func(sc *Scenario) {
	return func(sc *Scenario) { sc.Hosts, sc.Faults, sc.Budget = 3, class, n }
}

// clusterWith returns a scope of a cluster with that many hosts and voters, and n faults of these classes.
func clusterWith(hosts, voters, n int, class Faults) func(sc *Scenario) {
	return func(sc *Scenario) { sc.Hosts, sc.Voters, sc.Faults, sc.Budget = hosts, voters, class, n }
}

// withStandby returns a scope in which three voters get a standby, with n faults of these classes.
func withStandby(n int, class Faults) func(sc *Scenario) {
	return clusterWith(4, 3, n, class)
}

// withLiveness returns a scope in which liveness is checked, too.
func withLiveness(scope func(sc *Scenario)) func(sc *Scenario) {
	return func(sc *Scenario) {
		scope(sc)
		sc.Liveness = true
	}
}

// seeing returns a mistake in the view of the policy.
func seeing(change func(v *policy.View)) rules { return rules{view: change} }

func eachMember(v *policy.View, change func(m *policy.Member)) {
	for i := range v.Cluster.Members {
		change(&v.Cluster.Members[i])
	}
}

// Mistakes returns the seeded mistakes.
func Mistakes() []Mistake {
	list := append(membershipMistakes(), hostMistakes()...)
	list = append(list, operationMistakes()...)
	list = append(list, lockMistakes()...)
	list = append(list, stopMistakes()...)
	list = append(list, slices.Concat(cycleMistakes(), hostDownMistakes(), guardMistakes())...)
	list = append(list, requestMistakes()...)
	list = append(list, externalMistakes()...)
	list = append(list, alarmMistakes()...)
	list = append(list, corruptDataMistakes()...)
	list = append(list, dataLossMistakes()...)
	list = append(list, slices.Concat(commandMistakes(), recallMistakes(), defragMistakes())...)
	list = append(list, slices.Concat(removalMistakes(), replacementMistakes(), standbyMistakes(),
		unhealthyMistakes(), stepDownMistakes(), slowLeaderMistakes(), quietMistakes(), resizeMistakes(),
		retireMistakes(),
		successorMistakes(), transferMistakes(), learnerMistakes(), learnerStaysMistakes(), pausedUpgradeMistakes(),
		readdressMistakes())...)
	list = append(list, maskedMistakes()...)
	list = append(list, maskedCycleMistakes()...)
	for i := range list {
		list[i].Promise = promises()[list[i].breach].name
	}
	return list
}

// membershipMistakes returns the mistakes about members and quorums.
func membershipMistakes() []Mistake {
	return []Mistake{
		{
			Name: "a voter that is down counts as live", breach: voterDown, scope: clusterWith(3, 2, 1, EtcdCrash),
			rules: seeing(func(v *policy.View) {
				eachMember(v, func(m *policy.Member) { m.Live, m.Version = true, etcdVersion() })
			}),
		},
		{
			Name: "a membership change does not wait until the previous one has settled", breach: unsettled,
			scope: clusterWith(3, 1, 0, 0),
			rules: seeing(func(v *policy.View) { v.Cluster.StableFor = ages }),
		},
		{
			Name: "a learner is promoted at once", breach: learnerUnready, scope: clusterWith(3, 1, 0, 0),
			rules: seeing(func(v *policy.View) {
				eachMember(v, func(m *policy.Member) {
					m.Lag, m.LagKnown, m.SteadyFor, m.LiveFor = 0, true, ages, ages
				})
			}),
		},
		{
			Name: "a learner is promoted before it has been steady long enough", breach: learnerUnready,
			scope: clusterWith(3, 1, 0, 0),
			rules: seeing(func(v *policy.View) {
				eachMember(v, func(m *policy.Member) { m.SteadyFor, m.LiveFor = ages, ages })
			}),
		},
		{
			Name: "a learner that is cut off counts as keeping up", breach: learnerUnready,
			scope: clusterWith(3, 1, 1, MemberCutOff),
			rules: seeing(func(v *policy.View) {
				eachMember(v, func(m *policy.Member) { m.StillFor = 0 })
			}),
		},
		{
			Name: "the voter count becomes even although no further host is ready to join", breach: evenVoters,
			scope: clusterWith(2, 1, 0, 0),
			rules: seeing(func(v *policy.View) {
				v.Hosts = append(v.Hosts, policy.Host{
					ID: "Z", Name: "Z", Role: policy.RoleSpare, Health: health.OK,
					Qualified: true, Manage: true, P99: time.Hour,
				})
			}),
		},
		{
			Name:   "the learner of a different host is ignored",
			breach: secondLearner, scope: clusterWith(3, 1, 1, AgentCrash),
			rules: seeing(func(v *policy.View) {
				var keep []policy.Member
				for _, m := range v.Cluster.Members {
					if !m.Learner || m.PeerURL == v.Self.PeerURL {
						keep = append(keep, m)
					}
				}
				v.Cluster.Members = keep
			}),
		},
		{
			Name: "a learner is removed without checking that it has not been promoted", breach: voterRemoved,
			scope: clusterWith(3, 1, 1, LateCall),
			rules: rules{removeBlindly: true, view: func(v *policy.View) {
				if v.Op != nil && v.Op.Phase == policy.PhaseRollback {
					eachMember(v, func(m *policy.Member) { m.Learner = m.Learner || m.ID == v.Op.MemberID })
				}
			}},
		},
		{
			Name: "a standby counts as a joining learner", breach: standbyRemoved, scope: withStandby(1, Forgery),
			rules: seeing(func(v *policy.View) {
				eachMember(v, func(m *policy.Member) { m.Standby = false })
			}),
		},
		{
			Name: "the member ID in the data is not checked", breach: memberDataMoved,
			scope: clusterWith(3, 1, 1, EtcdCrash),
			rules: after(seeing(func(v *policy.View) {
				if v.Op != nil && v.Op.Host == v.Self.ID {
					v.Data.MemberID = goneID
				}
			}), memberUnrecorded),
		},
		{
			Name: "a voter is missing from the member list", breach: voterStopped, scope: clusterWith(3, 2, 0, 0),
			rules: after(seeing(func(v *policy.View) { v.Data.MemberID = goneID }), memberUnrecorded),
		},
	}
}

// hostMistakes returns the mistakes about the health of hosts, stopped etcds and pauses.
func hostMistakes() []Mistake {
	return []Mistake{
		{
			Name: "UNKNOWN counts as OK", breach: unknownJoins, scope: faults(1, HealthChange),
			rules: seeing(func(v *policy.View) {
				if v.Health.State == health.Unknown {
					v.Health.State = health.OK
				}
			}),
		},
		{
			Name: "UNKNOWN counts as SLOW", breach: unknownEvicts, scope: faults(1, HealthChange),
			rules: seeing(func(v *policy.View) {
				if v.Health.State == health.Unknown {
					v.Health.State = health.Slow
				}
			}),
		},
		{
			Name: "SLOW counts as OK", breach: unhealthyJoins, scope: faults(1, HealthChange),
			rules: seeing(func(v *policy.View) {
				if v.Health.State == health.Slow {
					v.Health.State = health.OK
				}
			}),
		},
		{
			Name: "clock skew is ignored", breach: clockOffJoins, scope: faults(1, ClockChange),
			rules: seeing(func(v *policy.View) { v.Clock.Offset = 0 }),
		},
		{
			Name: "a common cause is ignored", breach: commonCause, scope: clusterWith(3, 2, 2, HealthChange),
			rules: after(seeing(func(v *policy.View) {
				for i := range v.Hosts {
					v.Hosts[i].Health = health.OK
				}
			}), steppedDownToWorse),
		},
		{
			Name: "a cleanly stopped etcd counts as failed", breach: stoppedStarted,
			scope: clusterWith(3, 3, 1, OperatorStop),
			rules: seeing(func(v *policy.View) {
				if v.Unit.State == policy.UnitInactive {
					v.Unit.State = policy.UnitFailed
				}
			}),
		},
		{
			Name: "a pause is ignored", breach: stepWhilePaused, scope: clusterWith(3, 1, 1, OperatorPause),
			rules: seeing(func(v *policy.View) { v.Pause = nil }),
		},
	}
}

// operationMistakes returns the mistakes about the operation and its record.
func operationMistakes() []Mistake {
	return []Mistake{
		{
			Name: "an operation is adopted as soon as its lock is gone", breach: adoptedEarly,
			scope: faults(1, AgentCrash),
			rules: seeing(func(v *policy.View) {
				if v.Op != nil {
					v.Op.OrphanedFor = ages
				}
			}),
		},
		{
			Name: "an orphaned operation is never adopted", breach: operationStuck,
			scope: withLiveness(faults(1, AgentCrash)),
			rules: seeing(func(v *policy.View) {
				if v.Op != nil {
					v.Op.OrphanedFor = 0
				}
			}),
		},
		{
			Name: "a stuck join is never aborted", breach: operationStuck,
			scope: withLiveness(faults(1, MemberCutOff)),
			rules: seeing(func(v *policy.View) {
				if v.Op != nil {
					v.Op.Elapsed = 0
				}
				eachMember(v, func(m *policy.Member) { m.StalledFor = 0 })
			}),
		},
		{
			Name: "a learner that never started is never removed", breach: targetMissed,
			scope: withLiveness(clusterWith(3, 1, 2, LateCall|Slowness)),
			rules: seeing(func(v *policy.View) {
				if v.Op == nil {
					eachMember(v, func(m *policy.Member) { m.DownFor = 0 })
				}
			}),
		},
		{
			Name: "an agent releases its operation at startup", breach: recordReleased,
			scope: faults(1, AgentCrash),
			rules: rules{releaseOpOnStart: true},
		},
		{
			Name: "a record write does not compare the record's revision", breach: recordOverwritten,
			scope: faults(1, OperatorRelease),
			rules: rules{noOpFence: true},
		},
		{
			Name: "a record write does not compare the lock", breach: writeWithoutLock,
			scope: faults(2, LateCall|AgentCutOff),
			rules: rules{noTokenFence: true},
		},
		{
			Name:   "the lock is taken despite an operation, and its holder adopts that operation",
			breach: adoptedEarly, scope: faults(2, AgentPause|AgentCrash),
			rules: rules{takeUnfenced: true, view: func(v *policy.View) {
				if v.Op != nil && v.Lock.Mine {
					v.Op.OrphanedFor = ages
				}
			}},
		},
		{
			Name: "an agent continues its operation without the lock", breach: changeWithoutLock,
			scope: faults(1, AgentPause),
			rules: rules{noConfirm: true, view: func(v *policy.View) {
				if v.Op != nil && v.Op.Host == v.Self.ID {
					v.Lock.Mine, v.Lock.Held, v.Lock.Token = true, true, v.Op.Token
				}
			}},
		},
	}
}

// lockMistakes returns the mistakes in the lock protocol.
func lockMistakes() []Mistake {
	return []Mistake{
		{
			Name:   "the lock's validity counts from the receipt of the answer",
			breach: holderWithoutLock, scope: faults(1, AgentPause),
			rules: rules{leaseBeforeValidity: true},
		},
		{
			Name: "a step starts without confirming the lock", breach: changeWithoutLock,
			scope: faults(1, AgentPause), rules: rules{noConfirm: true},
		},
		{
			Name: "a call outlives the validity of its lock", breach: changeWithoutLock, scope: faults(1, AgentPause),
			rules: rules{noDeadline: true},
		},
		{
			Name: "the lock is renewed outside the control loop", breach: operationStuck,
			scope: withLiveness(faults(1, AgentPause)),
			rules: rules{renewedOutsideLoop: true},
		},
		{
			Name: "an unused lease is kept alive", breach: targetMissed, scope: withLiveness(faults(1, LateCall)),
			rules: rules{keptAlive: true},
		},
		{
			Name: "an agent uses a lock with its own name at startup", breach: holderWithoutLock,
			scope: faults(1, AgentCrash), rules: rules{lockByName: true},
		},
	}
}
