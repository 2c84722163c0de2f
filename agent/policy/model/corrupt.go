// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package model

import (
	"github.com/quorumd/quorumd/agent/policy"
	"github.com/quorumd/quorumd/health"
)

// In scopes with corrupt data, the unhealthy voter's data differs from that of the others, and its disk is fast. In
// such a scope, the alarm means leadership: while it is raised, that voter leads.

// addCorruptData replaces slow writes in the view with corrupt data. The voter's own health state counts as the first
// comparison, and the confirmation that replacementState.witness records as the second.
func (m *machine) addCorruptData(s *observation, v *policy.View) {
	for k := range v.Cluster.Members {
		c := &v.Cluster.Members[k]
		i := memberIndex(c.ID)
		if c.Fsyncs = (policy.Fsyncs{Known: true}); c.Learner || i < 0 || s.hosts[i].health != slow {
			continue
		}
		c.Corrupt = policy.Corruption{Times: 1 + int(s.confirmedUnhealthy(i)), For: ages, Revision: 1}
		if s.hosts[s.self].list != voter {
			setLeader(v.Cluster.Members, k, s.alarm != 0)
		}
	}
	for k := range v.Hosts {
		if h := &v.Hosts[k]; h.Health == health.Slow {
			h.Health, h.Strained, h.UnhealthySince.HangsFor = health.Failed, false, h.UnhealthySince.For
		}
	}
}

// memberIndex returns the index of the host whose member has this ID; -1 if none has.
func memberIndex(id uint64) int {
	for i := range maxHosts {
		if memberID(i) == id {
			return i
		}
	}
	return -1
}

// setLeader makes voter k lead if leads is set and that voter is live, and otherwise the first other live voter.
func setLeader(members []policy.Member, k int, leads bool) {
	leads = leads && members[k].Live
	led := false
	for i := range members {
		m := &members[i]
		m.Leader = !led && m.Live && !m.Learner && leads == (i == k)
		led = led || m.Leader
	}
}

// judgeCorruptData checks that no host joins while a voter with corrupt data leads: it would receive that data.
func (m *machine) judgeCorruptData(w *world, h int, c choice) breach {
	if w.alarm == 0 || !w.reaches(h) || w.hosts[h].list == voter {
		return fine
	}
	switch c.step {
	case beginVoter, beginStandby, beginReplace, addLearner, promote:
		for i := range w.n {
			if g := &w.hosts[i]; g.list == voter && g.health == slow && w.serves(i) {
				return corruptDataCopied
			}
		}
	}
	return fine
}

// corruptData returns the scopes in which the voters' data differs.
func corruptData() []Scenario {
	three := policy.Target{Voters: 3}
	return []Scenario{
		{
			Name: "a voter with corrupt data replaced", Hosts: 4, Voters: 3, Target: three, Unhealthy: true,
			CorruptData: true, Faults: HealthChange | Alarm, Budget: 2, Liveness: true,
		},
		{
			Name: "no majority has the same data during a join", Hosts: 3, Voters: 2, Target: three, Faults: Alarm,
			Budget: 1, Corrupt: true, Divided: true, Liveness: true,
		},
		{
			Name: "no majority has the same data during a host operation", Hosts: 3, Voters: 3, Target: three,
			Requests: 1, Faults: Alarm, Budget: 1, Corrupt: true, Divided: true, Liveness: true,
		},
		{
			Name: "no majority has the same data, and an operator removes a voter", Hosts: 3, Voters: 3,
			Target: three, Removals: 1, Faults: Alarm, Budget: 1, Corrupt: true, Divided: true,
			Liveness: true,
		},
	}
}

// corruptDataMistakes returns mistakes about the comparison of the voters' data.
func corruptDataMistakes() []Mistake {
	undivided := seeing(func(v *policy.View) { v.Cluster.Divided = false })
	divided := func(scope func(sc *Scenario)) func(sc *Scenario) {
		return func(sc *Scenario) {
			scope(sc)
			sc.Corrupt, sc.Divided = true, true
		}
	}
	join := func(sc *Scenario) {
		sc.Hosts, sc.Voters, sc.Faults, sc.Budget, sc.Target = 3, 2, Alarm, 1, policy.Target{Voters: 3}
	}
	corrupt := func(n int, class Faults) func(sc *Scenario) {
		return func(sc *Scenario) {
			unhealthyScope(n, class)(sc)
			sc.CorruptData = true
		}
	}
	return []Mistake{
		{
			Name: "a join begins although no majority has the same data", breach: begunInAlarm, scope: divided(join),
			rules: undivided,
		},
		{
			Name:   "a healthy voter is taken down although no majority has the same data",
			breach: begunInAlarm, scope: divided(oneRequest(3, 1, Alarm)), rules: undivided,
		},
		{
			Name:   "a dead voter is removed although no majority has the same data",
			breach: begunInAlarm, scope: divided(replacements(1, Alarm)), rules: undivided,
		},
		{
			Name: "a host joins while a voter with corrupt data leads", breach: corruptDataCopied,
			scope: corrupt(1, Alarm),
			rules: seeing(func(v *policy.View) {
				eachMember(v, func(m *policy.Member) { m.Leader = m.Leader && m.Corrupt.Times == 0 })
			}),
		},
		{
			Name:   "one comparison proves that data is corrupt",
			breach: liveReplaced, scope: corrupt(0, 0),
			rules: seeing(func(v *policy.View) {
				eachMember(v, func(m *policy.Member) { m.Corrupt.Times *= health.HashProofs })
			}),
		},
		{
			Name: "a voter with corrupt data that responds is removed as if it did not", breach: removedBeforeJoin,
			scope: corrupt(0, 0),
			rules: ofReplaced(func(_ *policy.View, m *policy.Member, _ *policy.Host) {
				m.Live, m.DownFor = false, ages
			}),
		},
	}
}
