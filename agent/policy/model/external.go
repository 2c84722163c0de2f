// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package model

import "github.com/quorumd/quorumd/agent/policy"

// An external manager starts etcd whenever etcd is down, except while it works on the host (see evOperatorStarts). The
// manager stops etcd only if the operation record reports the host as safe to stop, and reads nothing else.

// mayStopExternally reports whether an external manager may stop a host's etcd: the host is in its operation, which
// reports it as safe to stop.
func (w *world) mayStopExternally(i int) bool {
	h := &w.hosts[i]
	return w.cycles(i) && w.opPhase == phaseDown && h.unit == active && h.down == 0 && h.isMaintenance()
}

func (m *machine) externalStop(w *world, h int) (ok bool, found breach) {
	if !m.External {
		return false, fine
	}
	for i := range w.n {
		if i != h && w.hosts[i].list == voter && !w.runs(i) && w.faults == 0 {
			found = twoDown
		}
	}
	w.hosts[h].unit = inactive
	return true, found
}

// judgeExternal checks that a decision neither starts nor stops an external etcd, and that the other voters can do
// without a host when it is reported safe to stop.
func (w *world) judgeExternal(h int, c choice, leads bool) breach {
	a := &w.hosts[h]
	runs := a.unit == starting || a.unit == active
	switch c.step {
	case startUnit, startAsIs, stopUnit, takeDown, takeDownHeld, takeDownURL, restartUnit,
		writeEnv, writeNewEnv, writeURL:
		return externalEtcdDriven
	case beginVoter, beginStandby, beginReplace, addLearner:
		return joinsUnstartable
	case setDown:
		if runs && a.work != maintenanceRunning {
			return w.judgeStop(h, leads)
		}
	case endCycle, endKeep:
		if a.list == voter && a.work != maintenanceRunning && w.opPhase == phaseDown && !runs {
			return endedEarly
		}
	}
	return fine
}

// externalVoters returns a scope with three externally managed voters, one request for a host operation, and n faults
// of these classes.
func externalVoters(n int, class Faults) func(sc *Scenario) {
	return func(sc *Scenario) {
		oneRequest(3, n, class)(sc)
		sc.External = true
	}
}

// externals returns the scopes with an external etcd.
func externals() []Scenario {
	three := policy.Target{Voters: 3}
	return []Scenario{
		{
			Name: "external etcd, one host operation", Hosts: 3, Voters: 3, Target: three, Requests: 1, External: true,
			Liveness: true,
		},
		{
			Name: "external etcd, one host operation, 1 fault", Hosts: 3, Voters: 3, Target: three, Requests: 1,
			Faults: AllFaults, Budget: 1, External: true, Liveness: true,
		},
	}
}

// externalMistakes returns the mistakes about an external etcd.
func externalMistakes() []Mistake {
	return []Mistake{
		{
			Name: "a join begins although etcd cannot be started", breach: joinsUnstartable,
			scope: func(sc *Scenario) { sc.Hosts, sc.Voters, sc.External = 3, 2, true },
			rules: seeing(func(v *policy.View) { v.Self.Drives = v.Op == nil }),
		},
		{
			Name: "a stop step is issued for an external etcd", breach: externalEtcdDriven, scope: externalVoters(0, 0),
			rules: seeing(func(v *policy.View) { v.Self.Drives = v.Unit.State == policy.UnitActive }),
		},
		{
			Name:   "an external etcd that was stopped externally is started when its operation ends",
			breach: stoppedStarted,
			scope:  externalVoters(0, 0),
			rules: seeing(func(v *policy.View) {
				if v.Asked != nil && v.Asked.Over && v.Unit.State == policy.UnitInactive {
					v.Self.Drives, v.Unit.State = true, policy.UnitFailed
				}
			}),
		},
		{
			Name: "the operation ends before the external etcd is back", breach: endedEarly,
			scope: externalVoters(0, 0),
			rules: seeing(func(v *policy.View) {
				if v.Asked == nil || !v.Asked.Over {
					return
				}
				v.Unit.State = policy.UnitActive
				ownMember(v, func(m *policy.Member) { m.Live, m.LiveFor, m.SteadyFor = true, ages, ages })
			}),
		},
		{
			Name: "a host is reported safe to stop before its leadership transfer", breach: leaderStopped,
			scope: externalVoters(0, 0),
			rules: seeing(func(v *policy.View) { eachMember(v, func(m *policy.Member) { m.Leader = false }) }),
		},
		{
			Name: "a host is reported safe to stop while another voter is down", breach: stopAtRisk,
			scope: externalVoters(1, EtcdCrash),
			rules: seeing(func(v *policy.View) { eachMember(v, func(m *policy.Member) { m.Live = true }) }),
		},
		{
			Name: "a machine is rebooted while another voter is down", breach: stopAtRisk,
			scope: externalVoters(1, EtcdCrash),
			rules: seeing(func(v *policy.View) {
				if v.Op != nil && v.Op.Phase == policy.PhaseDown {
					eachMember(v, func(m *policy.Member) { m.Live = true })
				}
			}),
		},
	}
}
