// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package model

import (
	"slices"

	"github.com/quorumd/quorumd/agent/policy"
)

// smallScenarios returns the scopes of joins that every test run explores.
func smallScenarios() []Scenario {
	three := policy.Target{Voters: 3}
	spare := policy.Target{Voters: 3, Standbys: 1}
	return []Scenario{
		{Name: "a bootstrap and two joins", Hosts: 3, Target: three, Liveness: true},
		{Name: "a third voter, a standby, and a further spare", Hosts: 5, Voters: 2, Target: spare, Liveness: true},
		{Name: "one join, one fault", Hosts: 3, Voters: 2, Target: three, Faults: AllFaults, Budget: 1, Liveness: true},
		{
			Name: "a standby, and a forged operation", Hosts: 4, Voters: 3, Target: spare,
			Faults: Forgery,
			Budget: 1, Liveness: true,
		},
		{
			Name: "one join, unhealthy voters", Hosts: 3, Voters: 2, Target: three, Faults: HealthChange, Budget: 2,
			Liveness: true,
		},
	}
}

// Scenarios returns the scopes of joins of the full exploration, as deep as a few minutes on two cores allow.
func Scenarios() []Scenario {
	return append(smallScenarios(),
		Scenario{
			Name: "3 hosts, 2 faults", Hosts: 3, Voters: 1, Target: policy.Target{Voters: 3}, Faults: AllFaults,
			Budget: 2, Liveness: true, Long: true,
		},
		Scenario{
			Name: "5 hosts, 1 fault", Hosts: 5, Voters: 3, Target: policy.Target{Voters: 5}, Faults: AllFaults,
			Budget: 1, Liveness: true,
		},
	)
}

// smallCycles returns the scopes of host operations that every test run explores.
func smallCycles() []Scenario {
	three := policy.Target{Voters: 3}
	return []Scenario{
		{Name: "one host taken down", Hosts: 3, Voters: 3, Target: three, Requests: 1, Liveness: true},
		{
			Name: "one host taken down, a fault", Hosts: 3, Voters: 3, Target: three, Requests: 1, Faults: AllFaults,
			Budget: 1, Liveness: true,
		},
		{Name: "two hosts taken down", Hosts: 3, Voters: 3, Target: three, Requests: 2, Liveness: true},
		{
			Name: "one host taken down, its disk replaced", Hosts: 3, Voters: 3, Target: three, Requests: 1,
			Faults: Swap, Budget: 1, Liveness: true,
		},
		{
			Name: "one host taken down, its disk replaced, a standby missing", Hosts: 4, Voters: 3,
			Target: policy.Target{Voters: 3, Standbys: 1}, Requests: 1, Faults: Swap, Budget: 1, Liveness: true,
		},
		{
			Name: "one host taken down, a standby missing", Hosts: 4, Voters: 3,
			Target: policy.Target{Voters: 3, Standbys: 1}, Requests: 1, Liveness: true,
		},
	}
}

// Cycles returns the scopes of host operations, and those of alarms and corrupt data, as deep as a minute on two cores
// allows.
func Cycles() []Scenario {
	three := policy.Target{Voters: 3}
	return append(slices.Concat(smallCycles(), externals(), alarms(), corruptData(), recalls(), defrags()),
		Scenario{
			Name: "CORRUPT alarm while a dead voter is replaced", Hosts: 4, Voters: 3, Target: three, Repair: true,
			Faults: Alarm | HostCrash, Budget: 2, Corrupt: true, Liveness: true, Long: true,
		},
		Scenario{
			Name: "one host taken down, 2 faults", Hosts: 3, Voters: 3, Target: three, Requests: 1, Faults: AllFaults,
			Budget: 2, Liveness: true, Long: true,
		},
		Scenario{
			Name: "one host taken down, its disk replaced, a fault", Hosts: 3, Voters: 3, Target: three, Requests: 1,
			Faults: Swap | AllFaults, Budget: 2, Liveness: true, Long: true,
		},
		Scenario{
			Name: "two hosts taken down, a fault", Hosts: 3, Voters: 3, Target: three, Requests: 2, Faults: AllFaults,
			Budget: 1, Liveness: true,
		},
		Scenario{
			Name: "one host taken down, another host joins", Hosts: 3, Voters: 2, Target: three, Requests: 1,
			Faults: AllFaults, Budget: 1, Liveness: true, Long: true,
		},
	)
}

// smallRemovals returns the scopes of removals by an operator that every test run explores.
func smallRemovals() []Scenario {
	three := policy.Target{Voters: 3}
	return []Scenario{
		{Name: "a voter removed", Hosts: 3, Voters: 3, Target: three, Removals: 1, Liveness: true},
		{
			Name: "a dead voter removed", Hosts: 3, Voters: 3, Target: three, Removals: 1, Faults: EtcdCrash, Budget: 1,
			Liveness: true,
		},
	}
}

// Removals returns the scopes of removals by an operator, as deep as a minute on two cores allows. In one of them, a
// host operation is requested as well. In some, etcd may apply the removal late.
func Removals() []Scenario {
	three := policy.Target{Voters: 3}
	late := EtcdCrash | LateCall | AgentCrash | MemberCutOff
	return append(smallRemovals(),
		Scenario{
			Name: "a voter removed, a fault", Hosts: 3, Voters: 3, Target: three, Removals: 1, Faults: AllFaults,
			Budget: 1, Liveness: true,
		},
		Scenario{
			Name: "a voter removed, 2 faults", Hosts: 3, Voters: 3, Target: three, Removals: 1, Faults: late,
			Budget: 2, Liveness: true, Long: true,
		},
		Scenario{
			Name: "a voter removed, and one host taken down, a fault", Hosts: 3, Voters: 3, Target: three,
			Removals: 1, Requests: 1, Faults: late, Budget: 1, Liveness: true, Long: true,
		},
	)
}

// Deep returns larger scopes, which need much memory and time. Each ends at its bound or at its fixpoint. They go
// beyond the full exploration, with one more fault during one host operation, more faults during two host operations,
// and more hosts.
func Deep() []Scenario {
	three := policy.Target{Voters: 3}
	return []Scenario{
		{
			Name: "one host taken down, 3 faults", Hosts: 3, Voters: 3, Target: three, Requests: 1, Faults: AllFaults,
			Budget: 3, Liveness: true,
		},
		{
			Name: "one host taken down, another host joins, 2 faults", Hosts: 3, Voters: 2, Target: three, Requests: 1,
			Faults: AllFaults, Budget: 2, Liveness: true,
		},
		{
			Name: "4 hosts, 2 faults, a standby", Hosts: 4, Voters: 2, Target: policy.Target{Voters: 3, Standbys: 1},
			Faults: AllFaults, Budget: 2, Liveness: true,
		},
		{
			Name: "two of five hosts taken down, 1 fault", Hosts: 5, Voters: 5, Target: policy.Target{Voters: 5},
			Requests: 2,
			Faults:   AllFaults, Budget: 1, Liveness: true,
		},
		{
			Name: "two hosts taken down, 2 faults", Hosts: 3, Voters: 3, Target: three, Requests: 2, Faults: AllFaults,
			Budget: 2, Liveness: true,
		},
	}
}
