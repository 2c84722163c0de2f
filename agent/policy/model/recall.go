// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package model

import (
	"slices"

	"github.com/quorumd/quorumd/agent/policy"
)

// calledOff is why work is called off. No decision depends on the text.
const calledOff = "needed"

// seesLeaderless reports whether an agent reaches so many voters without a leader that the others cannot be a quorum.
func (w *world) seesLeaderless(h int) bool {
	voters, _ := w.votes()
	return !w.quorum() && policy.NoQuorumWithout(voters, w.seenVoters(h))
}

// seenVoters returns the number of other voters whose etcd an agent reaches, whether or not they serve.
func (w *world) seenVoters(h int) (n int) {
	if w.hosts[h].cutOff != 0 || w.hosts[h].blind != 0 {
		return 0
	}
	for i := range w.n {
		if g := &w.hosts[i]; i != h && g.list == voter && g.data == current && g.unit == active {
			n++
		}
	}
	return n
}

// mayBeCalledOff reports whether etcd is stopped for work that the agent may call off.
func (c *hostRequest) mayBeCalledOff() bool {
	return c.stopped != 0 && c.ended|c.recalled == 0 && (c.work == interruptible || c.work == agentReboot)
}

// needs reports whether the cluster needs a voter that is down for its own work: at least one other voter does not
// serve either, and the other voters that serve are at most a bare quorum.
func (w *world) needs(h int) bool {
	if w.hosts[h].list != voter {
		return false
	}
	voters, others := 0, 0
	for i := range w.n {
		voters += int(bit(w.hosts[i].list == voter))
		others += int(bit(w.hosts[i].list == voter && i != h && w.serves(i)))
	}
	return others <= majority(voters) && others < voters-1
}

// recallDue reports whether an agent must still bring back a host in interruptible maintenance: the cluster needs it,
// its data is there, and the agent reaches a voter. Without a quorum, the agent must reach enough voters without a
// leader to rule out that the others have a quorum.
func (w *world) recallDue() bool {
	for i := range w.n {
		h := &w.hosts[i]
		sees := w.seenVoters(i) > 0 && (w.quorum() || w.seesLeaderless(i))
		if h.work == interruptible && h.stopped != 0 && h.ended == 0 && h.unit == stoppedForRequest && h.agent == up &&
			h.down == 0 && h.data == current && h.recorded != 0 && sees && w.needs(i) {
			return true
		}
	}
	return false
}

// judgeRecall checks a decision to call off the work on a host.
func (w *world) judgeRecall(h int, c choice) breach {
	a := &w.hosts[h]
	if c.request != policy.RequestRecalled {
		return fine
	}
	rebooting := a.work == agentReboot && (a.stepFailed != 0 || c.step == reboot)
	switch {
	case a.work != interruptible && a.work != agentReboot || rebooting:
		return recalledUnasked
	case w.seenVoters(h) == 0:
		return recalledBlindly
	case !w.needs(h) || a.stopped == 0 || w.runs(h) || a.dataLost():
		return recalledNeedlessly
	}
	return fine
}

// recallScope returns a scope of that many voters with one request for that work, and n faults of these classes.
func recallScope(voters int, work uint8, n int, class Faults) func(sc *Scenario) {
	return func(sc *Scenario) {
		oneRequest(voters, n, class)(sc)
		sc.Work = work
	}
}

// recalls returns the scopes in which work is called off.
func recalls() []Scenario {
	scope := func(name string, set func(sc *Scenario)) Scenario {
		sc := Scenario{Name: name, Liveness: true}
		set(&sc)
		return sc
	}
	long := func(sc Scenario) Scenario {
		sc.Long = true
		return sc
	}
	return []Scenario{
		scope("3 voters, interruptible maintenance, 1 fault", recallScope(3, interruptible, 1, AllFaults|Swap)),
		long(scope("3 voters, interruptible maintenance, 2 faults", recallScope(3, interruptible, 2, AllFaults|Swap))),
		scope("5 voters, interruptible maintenance, crashes", recallScope(5, interruptible, 1,
			EtcdCrash|HostCrash|AgentCrash|AgentCutOff|AgentBlind|MemberCutOff)),
		scope("5 voters, a reboot, an etcd crashes", recallScope(5, agentReboot, 1, EtcdCrash|HostCrash)),
	}
}

// asked returns a mistake in the view of a host that has a request.
func asked(change func(v *policy.View)) rules {
	return seeing(func(v *policy.View) {
		if v.Asked != nil {
			change(v)
		}
	})
}

// recallMistakes returns the mistakes about calling work off.
func recallMistakes() []Mistake { return slices.Concat(needlessRecalls(), recallEndMistakes()) }

// needlessRecalls returns the mistakes of calling work off although that is not allowed.
func needlessRecalls() []Mistake {
	return []Mistake{
		{
			Name: "work that is not interruptible is called off", breach: recalledUnasked,
			scope: recallScope(3, maintenance, 1, EtcdCrash|HostCrash),
			rules: asked(func(v *policy.View) { v.Asked.Interruptible = true }),
		},
		{
			Name: "a reboot that the agent has already triggered is called off", breach: recalledUnasked,
			scope: recallScope(5, agentReboot, 1, EtcdCrash),
			rules: asked(func(v *policy.View) { v.Asked.RebootFor = policy.Never }),
		},
		{
			Name: "an external reboot is called off", breach: recalledUnasked,
			scope: recallScope(5, externalReboot, 1, EtcdCrash),
			rules: asked(func(v *policy.View) {
				if v.Cluster.Reachable && v.Unit.State == policy.UnitInactive {
					v.Asked.External, v.Asked.RebootFor = false, policy.Never
					eachMember(v, func(m *policy.Member) { m.DownFor = ages })
				}
			}),
		},
		{
			Name: "a host that reaches no member calls its work off", breach: recalledBlindly,
			scope: recallScope(3, interruptible, 1, AgentCutOff),
			rules: asked(func(v *policy.View) {
				if !v.Cluster.Reachable {
					v.Cluster.Leaderless, v.Cluster.LeaderlessFor = "B has no leader", ages
				}
			}),
		},
		{
			Name: "a host that reaches no member counts other voters as live", breach: recalledBlindly,
			scope: recallScope(5, interruptible, 1, AgentBlind),
			rules: asked(func(v *policy.View) {
				lives := 0
				eachMember(v, func(m *policy.Member) {
					if !m.Learner && !m.Live && m.PeerURL != v.Self.PeerURL && lives < 3 {
						m.Live = true
						lives++
					}
				})
			}),
		},
		{
			Name: "a voter that does not exist counts as failed", breach: recalledNeedlessly,
			scope: recallScope(3, interruptible, 0, 0),
			rules: asked(func(v *policy.View) {
				if v.Asked.Stopped {
					addHealthyVoter(v)
					eachMember(v, func(m *policy.Member) { m.Live, m.DownFor = m.Live && m.ID != 99, ages })
					addHealthyVoter(v)
				}
			}),
		},
		{
			Name: "work is called off although the fault tolerance is above 0", breach: recalledNeedlessly,
			scope: recallScope(5, interruptible, 0, 0),
			rules: asked(func(v *policy.View) {
				if !v.Asked.Stopped {
					return
				}
				down := false
				eachMember(v, func(m *policy.Member) {
					if m.Live && !down {
						m.Live, m.DownFor, down = false, ages, true
					}
				})
			}),
		},
		{
			Name: "a host whose disk was replaced calls its work off", breach: recalledNeedlessly,
			scope: recallScope(3, interruptible, 2, Swap|EtcdCrash),
			rules: after(asked(func(v *policy.View) {
				if v.Asked.Stopped && v.Data.State == policy.DataEmpty {
					v.Data.State, v.Data.ClusterID, v.Data.MemberID = policy.DataMember, clusterID, v.Self.MemberID
				}
			}), startedEmpty),
		},
	}
}

// recallEndMistakes returns the mistakes about the end of an operation whose work was called off, and the mistakes that
// keep work from being called off.
func recallEndMistakes() []Mistake {
	return []Mistake{
		{
			Name: "the end of the operation does not report that its work was called off", breach: recallMisreported,
			scope: recallScope(3, interruptible, 1, EtcdCrash),
			rules: rules{decision: func(d *policy.Decision) {
				if d.Step.Outcome == policy.Recalled {
					d.Step.Outcome = policy.Cycled
				}
			}},
		},
		{
			Name: "maintenance that was called off remains requested", breach: recallRepeated,
			scope: recallScope(3, interruptible, 1, EtcdCrash),
			rules: rules{decision: func(d *policy.Decision) {
				if d.Step.Outcome == policy.Recalled {
					d.Notes.Request.Change = policy.RequestRetried
				}
			}},
		},
		{
			Name: "a member without a leader is ignored", breach: neverRecalled,
			scope: withLiveness(recallScope(3, interruptible, 1, HostCrash)),
			rules: asked(func(v *policy.View) { v.Cluster.Leaderless, v.Cluster.LeaderlessFor = "", 0 }),
		},
		{
			Name: "a fault tolerance of 0 is ignored", breach: neverRecalled,
			scope: withLiveness(recallScope(5, interruptible, 1, HostCrash)),
			rules: asked(func(v *policy.View) {
				eachMember(v, func(m *policy.Member) { m.DownFor = 0 })
			}),
		},
		{
			Name: "a host whose work was called off waits for a quorum", breach: neverRecalled,
			scope: withLiveness(recallScope(3, interruptible, 1, HostCrash)),
			rules: asked(func(v *policy.View) {
				if v.Asked.Recalled != "" && !v.Cluster.Reachable {
					v.Asked.Over, v.Asked.Recalled = false, ""
				}
			}),
		},
	}
}
