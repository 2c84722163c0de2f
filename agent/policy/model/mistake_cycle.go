// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package model

import (
	"time"

	"github.com/quorumd/quorumd/agent/policy"
	"github.com/quorumd/quorumd/health"
)

// oneRequest returns a scope with that many voters, a request for one host operation, and n faults of these classes.
func oneRequest(voters, n int, class Faults) func(sc *Scenario) {
	return func(sc *Scenario) {
		sc.Hosts, sc.Voters, sc.Requests, sc.Faults, sc.Budget = voters, voters, 1, class, n
		sc.Target = policy.Target{Voters: voters | 1}
	}
}

// twoRequests returns a scope with requests for two host operations, and n faults of these classes.
func twoRequests(n int, class Faults) func(sc *Scenario) {
	return func(sc *Scenario) {
		oneRequest(3, n, class)(sc)
		sc.Requests = 2
	}
}

// addHealthyVoter adds a healthy voter to the view.
func addHealthyVoter(v *policy.View) {
	if !v.Cluster.Reachable {
		return
	}
	v.Cluster.Members = append(v.Cluster.Members, policy.Member{
		ID: 99, Name: "Z", PeerURL: "Z", Live: true,
		Version: etcdVersion(), LagKnown: true,
	})
	v.Hosts = append(v.Hosts, policy.Host{
		ID: "Z", Name: "Z", PeerURL: "Z", Role: policy.RoleVoter, Health: health.OK,
		Qualified: true, Manage: true, Answered: true,
	})
}

func ownMember(v *policy.View, change func(m *policy.Member)) {
	eachMember(v, func(m *policy.Member) {
		if m.PeerURL == v.Self.PeerURL {
			change(m)
		}
	})
}

// stopMistakes returns the mistakes about whether a voter may be taken down.
func stopMistakes() []Mistake {
	return []Mistake{
		{
			Name: "a voter is taken down while another one is down", breach: stopAtRisk,
			scope: oneRequest(3, 1, EtcdCrash),
			rules: seeing(func(v *policy.View) {
				eachMember(v, func(m *policy.Member) { m.Live = true })
			}),
		},
		{
			Name: "a host counts its own vote when it decides whether it may be taken down", breach: stopAtRisk,
			scope: oneRequest(3, 1, EtcdCrash),
			rules: seeing(func(v *policy.View) {
				counted := false
				ownMember(v, func(m *policy.Member) { counted = m.Live })
				eachMember(v, func(m *policy.Member) { m.Live, counted = m.Live || counted, counted && m.Live })
			}),
		},
		{
			Name: "a voter without a host record counts as healthy", breach: stopAtRisk,
			scope: oneRequest(3, 1, AgentCrash),
			rules: seeing(func(v *policy.View) {
				v.Hosts = v.Hosts[:0:0]
				eachMember(v, func(m *policy.Member) {
					v.Hosts = append(v.Hosts, policy.Host{
						ID: m.PeerURL, Name: m.PeerURL, PeerURL: m.PeerURL,
						Role: policy.RoleVoter, Health: health.OK, Manage: true, Answered: true,
					})
				})
			}),
		},
		{
			Name: "a voter is taken down while another one is unhealthy", breach: stopAtRisk,
			scope: oneRequest(3, 1, HealthChange),
			rules: seeing(func(v *policy.View) {
				for i := range v.Hosts {
					v.Hosts[i].Health = health.OK
				}
			}),
		},
		{
			Name: "one of two voters is taken down", breach: stopAtRisk, scope: oneRequest(2, 0, 0),
			rules: seeing(addHealthyVoter),
		},
		{
			Name: "one of four voters is taken down", breach: stopAtRisk, scope: oneRequest(4, 0, 0),
			rules: seeing(addHealthyVoter),
		},
		{
			Name: "a decision is not rechecked before etcd is stopped", breach: stopAtRisk,
			scope: oneRequest(3, 1, EtcdCrash),
			rules: seeing(func(v *policy.View) {
				if v.Op != nil {
					eachMember(v, func(m *policy.Member) { m.Live = true })
				}
			}),
		},
		{
			Name: "a learner that is catching up is ignored", breach: stopAtRisk,
			scope: func(sc *Scenario) {
				oneRequest(3, 1, OperatorRelease)(sc)
				sc.Hosts, sc.Target.Standbys = 4, 1
			},
			rules: seeing(func(v *policy.View) {
				eachMember(v, func(m *policy.Member) { m.Lag = 0 })
			}),
		},
		{
			Name: "leadership is not transferred before the leader's etcd is stopped", breach: leaderStopped,
			scope: oneRequest(3, 0, 0),
			rules: seeing(func(v *policy.View) {
				eachMember(v, func(m *policy.Member) { m.Leader = false })
			}),
		},
		{
			Name: "etcd is stopped without confirming the lock", breach: calledWithoutLock,
			scope: oneRequest(3, 1, AgentPause), rules: rules{noConfirm: true},
		},
	}
}

// commandMistakes returns the mistakes about a command, which runs while etcd is down.
func commandMistakes() []Mistake {
	state := func(from, to policy.HookState) rules {
		return seeing(func(v *policy.View) {
			if v.Asked != nil && v.Asked.Command.State == from {
				v.Asked.Command.State = to
			}
		})
	}
	return []Mistake{
		{
			Name: "etcd is started while the command runs", breach: startedDuringCommand, scope: oneRequest(3, 0, 0),
			rules: state(policy.HooksRunning, policy.HooksDone),
		},
		{
			Name:   "etcd is started when an operator ends the request, although the command runs",
			breach: startedDuringCommand, scope: oneRequest(3, 0, 0),
			rules: seeing(func(v *policy.View) {
				if v.Asked != nil && v.Asked.Over && v.Asked.Work == policy.WorkCommand {
					v.Asked.Command.State = policy.HooksDue
				}
			}),
		},
		{
			Name: "the command is run while etcd runs", breach: ranWhileEtcdRuns, scope: oneRequest(3, 0, 0),
			rules: seeing(func(v *policy.View) {
				if v.Asked != nil && v.Asked.Work == policy.WorkCommand {
					v.Asked.Stopped, v.Unit.State = true, policy.UnitInactive
				}
			}),
		},
		{
			Name: "a reboot during a command is not detected", breach: ranTwice,
			scope: oneRequest(3, 1, HostCrash),
			rules: seeing(func(v *policy.View) {
				if p := program(programCutOff); v.Asked != nil && v.Asked.Command == p.State() {
					p.OtherBoot = false
					v.Asked.Command = p.State()
				}
			}),
		},
		{
			Name: "a failed command counts as successful", breach: notRun,
			scope: oneRequest(3, 0, 0),
			rules: state(policy.HooksFailed, policy.HooksDone),
		},
	}
}

// cycleMistakes returns the mistakes about concurrent host operations.
func cycleMistakes() []Mistake {
	return []Mistake{
		{
			Name: "a host is taken down during another host's operation", breach: recordOverwritten,
			scope: twoRequests(0, 0),
			rules: rules{noOpFence: true, takeUnfenced: true, view: func(v *policy.View) {
				if v.Op != nil && v.Op.Host != v.Self.ID {
					v.Op, v.IdleFor = nil, 90*time.Second
				}
			}},
		},
		{
			Name: "the operation of a host that is down is released when its agent starts", breach: recordReleased,
			scope: oneRequest(3, 1, AgentCrash),
			rules: rules{releaseOpOnStart: true},
		},
		{
			Name: "the operation of a host that is down is adopted by another one", breach: cycleTouched,
			scope: oneRequest(3, 1, HostCrash),
			rules: seeing(func(v *policy.View) {
				if v.Op != nil && v.Op.Kind == policy.KindCycle && v.Op.Host != v.Self.ID {
					v.Op.Kind, v.Op.OrphanedFor, v.Op.MemberID = policy.KindJoin, ages, 0
				}
			}),
		},
		{
			Name: "a host is taken down while another one reports its own operation", breach: secondOperation,
			scope: twoRequests(1, Forgery),
			rules: seeing(func(v *policy.View) {
				for i := range v.Hosts {
					v.Hosts[i].InOperation = false
				}
			}),
		},
	}
}

// wrongRequestChange returns a mistake that replaces one change of the request with a wrong one.
func wrongRequestChange(right, wrong policy.RequestChange) rules {
	return rules{decision: func(d *policy.Decision) {
		if d.Notes.Request.Change == right {
			d.Notes.Request = policy.RequestNote{Change: wrong}
		}
		if d.Notes.Request.Change == policy.RequestEnds { // a start guard that stays is a separate mistake
			d.Notes.Request.Guard = policy.GuardCleared
		}
	}}
}

// wrongRecord returns a mistake in what the disk records about a request after a transition.
func wrongRecord(change func(before, after *policy.Request)) rules {
	return rules{afterTransition: func(before, after policy.Request) policy.Request {
		change(&before, &after)
		return after
	}}
}

// takenForReleased returns the mistake of counting an operation with a deleted record as released.
func takenForReleased() rules {
	return seeing(func(v *policy.View) {
		if v.Asked != nil && v.Asked.RecordDeleted {
			v.Asked.RecordDeleted, v.Asked.Released = false, true
		}
	})
}

// requestMistakes returns the mistakes about the end of a host's request and about its record on disk.
func requestMistakes() []Mistake {
	return []Mistake{
		{
			Name: "a request is dropped when its operation's record is deleted", breach: requestDropped,
			scope: oneRequest(3, 1, Forgery), rules: takenForReleased(),
		},
		{
			Name: "a request is dropped as soon as its operation is in flight", breach: requestDropped,
			scope: oneRequest(3, 0, 0), rules: wrongRequestChange(policy.RequestSeen, policy.RequestEnds),
		},
		{
			Name: "released maintenance is dropped while etcd is down", breach: requestDropped,
			scope: oneRequest(3, 1, OperatorRelease),
			rules: seeing(func(v *policy.View) {
				if v.Asked != nil && v.Asked.Released {
					v.Asked.Stopped = false
				}
			}),
		},
		{
			Name: "a finished request is dropped before etcd runs again", breach: requestDropped,
			scope: oneRequest(3, 2, AgentCrash|OperatorRelease),
			rules: seeing(func(v *policy.View) {
				if v.Asked != nil && v.Asked.Over && v.Op == nil {
					v.Asked.Stopped = false
				}
			}),
		},
		{
			Name:   "a request is dropped when its operation ends because etcd was stopped externally",
			breach: requestDropped, scope: oneRequest(3, 1, OperatorStop),
			rules: wrongRequestChange(policy.RequestRetried, policy.RequestEnding),
		},
		{
			Name: "a request remains after its work is done", breach: neverQuiescent,
			scope: withLiveness(oneRequest(3, 0, 0)),
			rules: wrongRequestChange(policy.RequestEnding, policy.RequestRetried),
		},
		{
			Name: "the start of an operation is not recorded", breach: requestUnrecorded, scope: oneRequest(3, 0, 0),
			rules: wrongRecord(func(before, after *policy.Request) { after.Begun = before.Begun }),
		},
		{
			Name: "the end of an operation and its request is not recorded", breach: requestUnrecorded,
			scope: oneRequest(3, 0, 0),
			rules: wrongRecord(func(before, after *policy.Request) { after.Ended = before.Ended }),
		},
		{
			Name: "the abort of an operation is not recorded", breach: requestUnrecorded,
			scope: oneRequest(3, 1, OperatorStop),
			rules: wrongRecord(func(before, after *policy.Request) { after.Begun = after.Begun || before.Begun }),
		},
		{
			Name: "an operation in flight is not recorded", breach: opSeenUnrecorded, scope: oneRequest(3, 0, 0),
			rules: wrongRequestChange(policy.RequestSeen, policy.RequestStays),
		},
		{
			Name: "a finished request remains if its agent crashed at the end", breach: hostNotBack,
			scope: withLiveness(oneRequest(3, 1, AgentCrash)),
			rules: wrongRequestChange(policy.RequestEnds, policy.RequestStays),
		},
	}
}

// hostDownMistakes returns the mistakes about a host that its operation has taken down, and about its return.
func hostDownMistakes() []Mistake {
	return []Mistake{
		{
			Name: "an operation counts as released when its record was deleted", breach: startedEarly,
			scope: oneRequest(3, 1, Forgery),
			rules: after(takenForReleased(), requestDropped),
		},
		{
			Name: "maintenance in progress counts as finished", breach: startedEarly, scope: oneRequest(3, 0, 0),
			rules: seeing(func(v *policy.View) {
				if v.Asked != nil && v.Asked.Stopped {
					v.Asked.Over = true
				}
			}),
		},
		{
			Name: "stopping etcd is not recorded", breach: hostNotBack, scope: withLiveness(oneRequest(3, 0, 0)),
			rules: wrongRecord(func(before, after *policy.Request) {
				after.Stopped = after.Stopped && before.Stopped
			}),
		},
		{
			Name: "starting etcd is not recorded", breach: hostNotBack,
			scope: withLiveness(oneRequest(3, 1, AgentCrash)),
			rules: wrongRecord(func(before, after *policy.Request) {
				after.Stopped = after.Stopped || before.Stopped
			}),
		},
		{
			Name: "the operation ends before the member serves", breach: endedEarly, scope: oneRequest(3, 0, 0),
			rules: seeing(func(v *policy.View) {
				ownMember(v, func(m *policy.Member) {
					m.Live, m.LagKnown, m.Lag, m.LiveFor, m.SteadyFor = true, true, 0, ages, ages
				})
			}),
		},
		{
			Name: "the operation ends before the member has served long enough", breach: endedEarly,
			scope: oneRequest(3, 0, 0),
			rules: seeing(func(v *policy.View) {
				ownMember(v, func(m *policy.Member) { m.LiveFor, m.SteadyFor = ages, ages })
			}),
		},
		{
			Name: "a stopping etcd counts as running", breach: targetMissed,
			scope: withLiveness(oneRequest(3, 0, 0)),
			rules: seeing(func(v *policy.View) {
				if v.Unit.State == policy.UnitDeactivating {
					v.Unit.State = policy.UnitActive
				}
			}),
		},
		{
			Name: "a manual stop counts as the end of the work", breach: stoppedStarted,
			scope: oneRequest(3, 1, OperatorStop),
			rules: seeing(func(v *policy.View) {
				if v.Asked != nil && v.Op != nil && v.Unit.State == policy.UnitInactive {
					v.Unit.State = policy.UnitFailed
				}
			}),
		},
		{
			Name: "a reboot is not detected", breach: rebootedAgain, scope: oneRequest(3, 0, 0),
			rules: seeing(func(v *policy.View) {
				if v.Asked != nil && v.Op != nil && v.Asked.Work == policy.WorkReboot {
					v.Asked.Over, v.Op.SameBoot = false, true
				}
			}),
		},
	}
}
