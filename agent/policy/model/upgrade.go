// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package model

import "github.com/quorumd/quorumd/agent/policy"

// upgradeState is an upgrade to the next minor version that is paused before the last member. Only the time until an
// operator resumes or aborts the upgrade is modelled; after that, all members run one version in the model. rollout.go
// explores rollouts.
type upgradeState struct {
	oldest uint8 // the host of the last member with the older version, plus 1; 0 after an operator has decided
}

func (u *upgradeState) pack(p *packer)   { p.put(u.oldest, 3) }
func (u *upgradeState) unpack(p *packer) { u.oldest = p.get(3) }

func (u *upgradeState) permute(place *[maxHosts]uint8) {
	if u.oldest != 0 {
		u.oldest = place[u.oldest-1] + 1
	}
}

// upgradeMark returns a number that distinguishes the host with the older version from all others, to sort the hosts.
func (u *upgradeState) upgradeMark(i int) uint64 {
	if int(u.oldest) == i+1 {
		return 1 << 60
	}
	return 0
}

// upgradeView sets the versions in a view, and the paused rollout.
func (s *observation) upgradeView(v *policy.View) {
	if s.oldest == 0 {
		return
	}
	if s.oldest != s.self+1 {
		v.Self.Etcd = newMinor
	}
	for i := range v.Cluster.Members {
		m := &v.Cluster.Members[i]
		if m.Version.Known() && m.ID != memberID(int(s.oldest-1)) {
			m.Version = newMinor
		}
	}
	if s.reachable != 0 {
		v.Rollout = &policy.Rollout{
			ID: rolloutID, Work: policy.WorkCommand, Upgrade: newMinor.String(), Raises: true, WithoutSnapshot: true,
			Waiting: []string{hostName(int(s.oldest - 1))}, Due: true,
		}
	}
}

// judgeUpgrade checks that no agent removes the last member with the older version before an operator has decided about
// the upgrade.
func (w *world) judgeUpgrade(c choice) breach {
	removes := c.step == removeMember || c.step == removeLearner
	if removes && w.oldest != 0 && c.target == w.oldest-1 {
		return upgradeUndecided
	}
	return fine
}

// awaitsDecision reports whether, in this scope, a member may have to stay until an operator has decided about the
// upgrade, so that a liveness run begins with that decision.
func (m *machine) awaitsDecision() bool {
	return m.Retirements+m.ResizeTo+m.Removals > 0 || m.Repair || m.Unhealthy || m.faults&Swap != 0
}

// upgradePromises returns the promise about members that are removed during an upgrade.
func upgradePromises() map[breach]promise {
	return map[breach]promise{
		upgradeUndecided: {
			"P9", "the last member with the older version is removed before an operator has decided about the upgrade",
		},
	}
}

// smallUpgrades returns the scopes of paused upgrades that every test run explores.
func smallUpgrades() []Scenario {
	three := policy.Target{Voters: 3}
	return []Scenario{
		{
			Name: "a voter retired during an upgrade", Hosts: 4, Voters: 3, Target: three, Retirements: 1,
			Upgrade: true, Liveness: true,
		},
		{
			Name: "three voters become one during an upgrade", Hosts: 3, Voters: 3, Target: three, ResizeTo: 1,
			Upgrade: true, Liveness: true,
		},
		{
			Name: "a voter removed during an upgrade", Hosts: 3, Voters: 3, Target: three, Removals: 1, Upgrade: true,
			Liveness: true,
		},
		{
			Name: "one host taken down during an upgrade", Hosts: 3, Voters: 3, Target: three, Requests: 1,
			Faults: EtcdCrash | HostCrash, Budget: 1, Upgrade: true, Liveness: true,
		},
		{
			Name: "a dead voter replaced during an upgrade", Hosts: 4, Voters: 3, Target: three, Repair: true,
			Faults: HostCrash, Budget: 1, Upgrade: true, Liveness: true,
		},
	}
}

// Upgrades returns the scopes of paused upgrades together with other operations.
func Upgrades() []Scenario {
	three := policy.Target{Voters: 3}
	return append(smallUpgrades(),
		Scenario{
			Name: "an unhealthy voter replaced during an upgrade", Hosts: 4, Voters: 3, Target: three, Unhealthy: true,
			Faults: HealthChange, Budget: 1, Upgrade: true, Liveness: true, Long: true,
		},
		Scenario{
			Name: "one host taken down during an upgrade, its disk replaced", Hosts: 3, Voters: 3, Target: three,
			Requests: 1, Faults: Swap, Budget: 1, Upgrade: true, Liveness: true, Long: true,
		},
	)
}

// during returns a scope in which an upgrade is paused as well.
func during(scope func(sc *Scenario)) func(sc *Scenario) {
	return also(scope, func(sc *Scenario) { sc.Upgrade = true })
}

// pausedUpgradeMistakes returns the mistakes about members that are removed during an upgrade.
func pausedUpgradeMistakes() []Mistake {
	unseen := seeing(func(v *policy.View) { v.Rollout = nil })
	removal := func(sc *Scenario) {
		sc.Hosts, sc.Voters, sc.Removals, sc.Target = 3, 3, 1, policy.Target{Voters: 3}
	}
	lost := func(sc *Scenario) {
		sc.Hosts, sc.Voters, sc.Requests, sc.Target = 3, 3, 1, policy.Target{Voters: 3}
		sc.Faults, sc.Budget = Swap, 1
	}
	return []Mistake{
		{
			Name: "a retired voter leaves during an upgrade", breach: upgradeUndecided,
			scope: during(retiring(4, 3, 0, 0)), rules: unseen,
		},
		{
			Name: "a paused upgrade counts as ended", breach: upgradeUndecided, scope: during(resizing(0, 0)),
			rules: seeing(func(v *policy.View) {
				if v.Rollout != nil {
					v.Rollout.Over = true
				}
			}),
		},
		{
			Name: "a requested removal ignores an upgrade", breach: upgradeUndecided, scope: during(removal),
			rules: unseen,
		},
		{
			Name: "the unknown version of a dead voter counts as the new one", breach: upgradeUndecided,
			scope: during(replacements(0, 0)),
			rules: seeing(func(v *policy.View) {
				eachMember(v, func(m *policy.Member) {
					if !m.Live && v.Rollout != nil {
						m.Version = newMinor
					}
				})
			}),
		},
		{
			Name: "the etcd of the last member with the older version counts as too old to start", breach: hostNotBack,
			scope: withLiveness(during(func(sc *Scenario) {
				sc.Hosts, sc.Voters, sc.Requests, sc.Target = 3, 3, 1, policy.Target{Voters: 3}
			})),
			rules: seeing(func(v *policy.View) {
				if v.Rollout != nil && v.Self.Etcd == oldMinor {
					v.Self.Etcd = policy.Version{Major: 3, Minor: 5, Patch: 35}
				}
			}),
		},
		{
			Name: "a host replaces its own member, whose data was lost, during an upgrade", breach: upgradeUndecided,
			scope: during(lost), rules: seeing(func(v *policy.View) { v.Rollout, v.Self.Etcd = nil, newMinor }),
		},
	}
}
