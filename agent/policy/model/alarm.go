// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package model

import "github.com/quorumd/quorumd/agent/policy"

// addAlarm adds the active alarm to the view.
func (m *machine) addAlarm(s *observation, v *policy.View) {
	if s.alarm != 0 {
		v.Cluster.Intact, v.Cluster.Roomy, v.Cluster.Alarms = !m.Corrupt, m.Corrupt, "A has raised an alarm"
		if m.Divided {
			v.Cluster.Intact, v.Cluster.Divided = true, true
		}
	}
}

// judgeAlarm checks that an active alarm stops joins and replacements and, if it is CORRUPT, also the start of other
// operations and the removal of a dead voter. A call in flight may complete, and a join may be rolled back.
func (m *machine) judgeAlarm(w *world, h int, c choice) breach {
	if m.CorruptData {
		return m.judgeCorruptData(w, h, c)
	}
	if w.alarm == 0 || !w.reaches(h) {
		return fine
	}
	switch c.step {
	case beginVoter, beginStandby, beginReplace, addLearner, promote:
		return begunInAlarm
	case beginCycle, beginReaddress, rollBackLeft:
		if m.Corrupt {
			return begunInAlarm
		}
	case beginRemoval: // with Divided there is no alarm, so an operator may remove the voters whose data is wrong
		if m.Corrupt && !m.Divided {
			return begunInAlarm
		}
	case removeMember: // an operator's removal that is in flight may complete
		if m.Corrupt && w.opReplace != 0 {
			return begunInAlarm
		}
	}
	return fine
}

// alarms returns the scopes in which etcd may raise an alarm at any time.
func alarms() []Scenario {
	three := policy.Target{Voters: 3}
	return []Scenario{
		{
			Name: "CORRUPT alarm during a join", Hosts: 3, Voters: 2, Target: three, Faults: Alarm, Budget: 1,
			Corrupt: true, Liveness: true,
		},
		{
			Name: "NOSPACE alarm during a join", Hosts: 3, Voters: 2, Target: three, Faults: Alarm, Budget: 1,
			Liveness: true,
		},
		{
			Name: "CORRUPT alarm during a host operation", Hosts: 3, Voters: 3, Target: three, Requests: 1,
			Faults: Alarm, Budget: 1, Corrupt: true, Liveness: true,
		},
	}
}

// alarmMistakes returns mistakes about etcd's alarms.
func alarmMistakes() []Mistake {
	noAlarm := seeing(func(v *policy.View) { v.Cluster.Intact, v.Cluster.Roomy = true, true })
	noAlarmDuringOp := seeing(func(v *policy.View) {
		if v.Op != nil {
			v.Cluster.Intact, v.Cluster.Roomy = true, true
		}
	})
	join := func(corrupt bool) func(sc *Scenario) {
		return func(sc *Scenario) {
			sc.Hosts, sc.Voters, sc.Faults, sc.Budget, sc.Corrupt = 3, 2, Alarm, 1, corrupt
			sc.Target = policy.Target{Voters: 3}
		}
	}
	cycle := func(sc *Scenario) {
		oneRequest(3, 1, Alarm)(sc)
		sc.Corrupt = true
	}
	replacement := func(sc *Scenario) {
		replacements(1, Alarm)(sc)
		sc.Corrupt = true
	}
	return []Mistake{
		{Name: "a join begins despite a CORRUPT alarm", breach: begunInAlarm, scope: join(true), rules: noAlarm},
		{Name: "a join begins despite a NOSPACE alarm", breach: begunInAlarm, scope: join(false), rules: noAlarm},
		{
			Name: "a join continues despite a NOSPACE alarm", breach: begunInAlarm, scope: join(false),
			rules: noAlarmDuringOp,
		},
		{
			Name: "a healthy voter is taken down despite a CORRUPT alarm", breach: begunInAlarm, scope: cycle,
			rules: noAlarm,
		},
		{
			Name: "a dead voter is removed despite a CORRUPT alarm", breach: begunInAlarm, scope: replacement,
			rules: noAlarmDuringOp,
		},
	}
}
