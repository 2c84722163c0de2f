// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package model

import "github.com/quorumd/quorumd/agent/policy"

// isUnhealthy reports whether a voter is unhealthy by its own health state and, as witness records, by another source.
// witness marks at most one voter. If several are unhealthy, agents replace them only as a whole failure domain, which
// the model leaves out.
func (w *world) isUnhealthy(i int) bool {
	return w.witness != 0 && int(w.dead) == i+1 && w.hosts[i].health == slow && w.present(i)
}

// confirmedUnhealthy returns 1 if a source other than a voter's own health state confirms that the voter is unhealthy,
// otherwise 0.
func (s *observation) confirmedUnhealthy(i int) uint8 {
	return bit(s.witness != 0 && int(s.dead) == i+1)
}

// tardy is the value of witness for an unhealthy voter that, if it does not answer, is too slow rather than hung. Such
// a voter still votes.
const tardy = 2

// onlyTardyIsDown reports whether the replaced voter is the only one that does not answer, and is merely too slow to
// answer. In addition, the other voters and the replacement must be a quorum without it.
func (w *world) onlyTardyIsDown() bool {
	who := int(w.rpTarget)
	if w.opReplace == 0 || w.rpGone != 0 || w.witness != tardy || !w.isUnhealthy(who) {
		return false
	}
	voters, serving := 0, 0
	for i := range w.n {
		if w.hosts[i].list == voter {
			voters++
			serving += int(bit(i != who && w.serves(i)))
		}
	}
	return serving == voters-1 && serving+1 >= majority(voters+1)
}

// judgeCompletion checks whether a voter's host may remove another voter: the voter count is even or above the recorded
// size, and the other voter does not lead. In addition, the other voter is dead or unhealthy, or it was unhealthy when
// this host became a voter to replace it and no other voter is unhealthy now.
func (w *world) judgeCompletion(c choice, who int, leads bool, size policy.Target) breach {
	switch voters, _ := w.votes(); {
	case voters%2 == 1 && (!size.Resized || voters <= size.Voters):
		return removedWithoutReplacement
	case leads && c.step == removeMember:
		return leaderRemoved
	case (c.step == beginReplace || w.opVotes != 0) && !w.isUnhealthy(who) && !w.isDead(who):
		return liveReplaced
	}
	for i := range w.n {
		g := &w.hosts[i]
		unhealthy := i != who && g.list == voter && g.health == slow && w.present(i)
		if unhealthy && w.answers(who) && w.hosts[who].health == healthy {
			return healthyRemoved
		}
	}
	return fine
}

// unhealthySurplus reports whether agents have to remove an unhealthy surplus voter, whichever agents are down: all
// voters serve, and those that report themselves healthy are a quorum of the rest.
func (w *world) unhealthySurplus(target policy.Target) bool {
	voters, unhealthy, known := 0, 0, 0
	for i := range w.n {
		h := &w.hosts[i]
		switch {
		case h.list != voter:
			continue
		case !w.serves(i), h.health == slow && !w.present(i):
			return false
		case h.health == slow:
			unhealthy++
		case w.present(i):
			known++
		}
		voters++
	}
	return voters == target.Voters+1 && voters%2 == 0 && unhealthy == 1 && known >= majority(voters-1)
}

// judgeUnhealthyGone checks that a quiescent world has no unhealthy surplus voter.
func (w *world) judgeUnhealthyGone(target policy.Target) breach {
	voters, _ := w.votes()
	for i := range w.n {
		if h := &w.hosts[i]; h.list == voter && h.health == slow && voters > target.Voters {
			return notReplaced
		}
	}
	return fine
}

// unhealthyPromises returns the promises about voters that are replaced as unhealthy.
func unhealthyPromises() map[breach]promise {
	return map[breach]promise{
		healthyReplaced: {
			"P2",
			"a voter is replaced as unhealthy although its own health state or every other source contradicts that",
		},
		healthyRemoved: {
			"P2", "a healthy voter is removed as surplus although another voter is unhealthy",
		},
		removedBeforeJoin: {"P2", "an unhealthy voter that responds is removed before its replacement votes"},
		leaderRemoved:     {"P2", "a leader is removed without a leadership transfer"},
	}
}

// smallUnhealthy returns the scopes of replacements of unhealthy voters that every test run explores.
func smallUnhealthy() []Scenario {
	return []Scenario{
		{
			Name: "an unhealthy voter replaced", Hosts: 4, Voters: 3, Target: policy.Target{Voters: 3}, Unhealthy: true,
			Faults: HealthChange, Budget: 1, Liveness: true,
		},
		{
			Name: "an unhealthy surplus voter, and an agent down", Hosts: 4, Voters: 4,
			Target: policy.Target{Voters: 3}, Unhealthy: true,
			Faults: HealthChange | AgentCrash, Budget: 2, Liveness: true,
		},
		{
			Name: "an unhealthy voter replaced by a standby", Hosts: 4, Voters: 3,
			Target: policy.Target{Voters: 3, Standbys: 1}, Unhealthy: true,
			Faults: HealthChange, Budget: 1, Liveness: true,
		},
		{
			Name: "an unhealthy voter that responds too slowly, replaced", Hosts: 4, Voters: 3,
			Target: policy.Target{Voters: 3}, Unhealthy: true, Tardy: true, Faults: HealthChange | EtcdCrash, Budget: 2,
			Liveness: true,
		},
	}
}

// UnhealthyReplacements returns the scopes of replacements of unhealthy voters, as deep as a few minutes on two cores
// allow. In some of them, a second fault can occur at every step.
func UnhealthyReplacements() []Scenario {
	second := HealthChange | EtcdCrash | LateCall | AgentCrash | HostCrash | Slowness
	return append(smallUnhealthy(),
		Scenario{
			Name: "an unhealthy voter replaced, and an agent down", Hosts: 4, Voters: 3,
			Target:    policy.Target{Voters: 3},
			Unhealthy: true, Faults: HealthChange | AgentCrash, Budget: 2, Liveness: true,
		},
		Scenario{
			Name: "an unhealthy voter replaced, 2 faults", Hosts: 4, Voters: 3, Target: policy.Target{Voters: 3},
			Unhealthy: true,
			Faults:    second, Budget: 2, Long: true,
		},
		Scenario{
			Name: "an unhealthy voter replaced by a standby, 2 faults", Hosts: 4, Voters: 3,
			Target: policy.Target{Voters: 3, Standbys: 1}, Unhealthy: true, Faults: second, Budget: 2, Long: true,
		},
	)
}
