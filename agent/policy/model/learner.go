// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package model

import "github.com/quorumd/quorumd/agent/policy"

// learnerState holds which host is configured to have a permanent learner, and the limits on learners.
type learnerState struct {
	permanent uint8 // the host with the permanent learner, plus 1; 0 if there is none
	limit     uint8 // the --max-learners that every host configures
	lowered   uint8 // the host whose running etcd has the limit 1 instead, plus 1; 0 if there is none
	unwilling uint8 // the host that is configured without standbys, plus 1; 0 if there is none
}

func (l *learnerState) pack(p *packer) {
	p.put(l.permanent, 3)
	p.put(l.limit, 2)
	p.put(l.lowered, 3)
	p.put(l.unwilling, 3)
}

func (l *learnerState) unpack(p *packer) {
	l.permanent, l.limit, l.lowered, l.unwilling = p.get(3), p.get(2), p.get(3), p.get(3)
}

func (l *learnerState) permute(place *[maxHosts]uint8) {
	for _, at := range []*uint8{&l.permanent, &l.lowered, &l.unwilling} {
		if *at != 0 {
			*at = place[*at-1] + 1
		}
	}
}

// learnerMark returns a number that distinguishes the hosts named in l from all others, to sort the hosts.
func (l *learnerState) learnerMark(i int) uint64 {
	var mark uint64
	if l.isPermanent(i) {
		mark |= 1 << 63
	}
	if int(l.lowered) == i+1 {
		mark |= 1 << 62
	}
	if int(l.unwilling) == i+1 {
		mark |= 1 << 61
	}
	return mark
}

// isPermanent reports whether a host is configured to have a permanent learner.
func (l *learnerState) isPermanent(i int) bool { return int(l.permanent) == i+1 }

// isUnwilling reports whether a host is configured without standbys, unlike the others.
func (l *learnerState) isUnwilling(i int) bool { return int(l.unwilling) == i+1 }

// limitAt returns the limit of a host's running etcd.
func (l *learnerState) limitAt(i int) uint8 {
	if int(l.lowered) == i+1 {
		return 1
	}
	return max(l.limit, 1)
}

// learners returns the number of learners in the member list, not counting host h.
func (w *world) learners(h int) (n int) {
	for i := range w.n {
		n += int(bit(i != h && w.hosts[i].list == learner))
	}
	return n
}

// limitsDiffer reports whether the etcd process of one member has a different limit on learners than the others.
func (w *world) limitsDiffer() bool {
	return w.lowered != 0 && w.hosts[w.lowered-1].list != unlisted && max(w.limit, 1) != 1
}

// joinsNextTo reports whether host h would join next to a permanent learner, or as the permanent learner.
func (w *world) joinsNextTo(h int) bool {
	return w.isPermanent(h) || w.permanent != 0 && w.hosts[w.permanent-1].list == learner
}

// limitBlocks reports whether a host may not become a learner because of the limits that the members' hosts publish.
func (w *world) limitBlocks(h int) bool {
	if !w.joinsNextTo(h) || w.hosts[h].list != unlisted || !w.reaches(h) {
		return false
	}
	if w.limit < w.limitNeeded(h) {
		return true
	}
	live := func(i int) bool { return w.answers(i) && (i == h || w.hosts[h].blind == 0) }
	silent := 0
	for i := range w.n {
		silent += int(bit(w.hosts[i].list == voter && !live(i)))
	}
	for i := range w.n {
		g := &w.hosts[i]
		known := w.present(i) && live(i) || w.isPermanent(i) && g.list == learner
		leavesFirst := g.list == voter && silent == 1 && w.isDead(i)
		if g.list != unlisted && !leavesFirst && (!known || w.limitAt(i) != w.limit) {
			return true
		}
	}
	return false
}

// limitNeeded returns the smallest limit on learners with which host h may join next to a permanent learner, or as the
// permanent learner. There must be places for two learners and, if h has the permanent learner, for it and every
// standby.
func (w *world) limitNeeded(h int) uint8 {
	need := uint8(1)
	for i := range w.n {
		g := &w.hosts[i]
		need += bit(w.isPermanent(h) && i != h && g.list == learner && g.named != 0 && !w.joining(i))
	}
	return max(2, need)
}

// limitView sets what a view shows about a host's limit and about a permanent learner.
func (s *observation) limitView(m *policy.Member, i int, g observedHost) {
	m.Permanent = s.isPermanent(i) && m.Learner
	if m.Permanent || g.present != 0 && g.live != 0 {
		m.MaxLearners = int(s.limitAt(i))
	}
	m.NotedLearner = m.LearnerNote()
}

// judgeLearnerAdd checks that all members accept the addition of a learner next to a permanent one, and that a place
// for another learner is left.
func (w *world) judgeLearnerAdd(h int) breach {
	switch {
	case !w.joinsNextTo(h):
		return fine
	case w.limitsDiffer():
		return limitsDiffer
	case w.limit < w.limitNeeded(h):
		return noPlaceForLearner
	}
	return fine
}

// judgeNextLimit checks that etcd is not stopped if it would not start again because more learners are listed than its
// next start allows.
func (m *machine) judgeNextLimit(w *world, h int, c choice) breach {
	listed := w.learners(h) + int(bit(w.hosts[h].list == learner))
	stops := takesDown(c.step) || c.step == restartUnit
	stops = stops && w.hosts[h].work != externalReboot // that machine goes down anyway
	if m.NextLimit > 0 && stops && w.hosts[h].unit == active && listed > int(m.NextLimit) {
		return startsNoMore
	}
	return fine
}

// unwillingSpares returns the number of hosts that are configured without standbys and have no voter: 0 or 1.
func (w *world) unwillingSpares() int {
	return int(bit(w.unwilling != 0 && w.hosts[max(w.unwilling, 1)-1].list != voter))
}

// judgeLearnerBegins checks that the host of the permanent learner joins as a learner, and after all voters.
func (m *machine) judgeLearnerBegins(w *world, h int, c choice) breach {
	voters, _ := w.votes()
	replaces := c.step == beginReplace || c.step == beginRemoveLost
	switch {
	case !w.isPermanent(h) || c.step != beginVoter && c.step != beginStandby && !replaces:
		return fine
	case c.step == beginVoter || replaces:
		return permanentVotes
	case voters-w.retiring() < m.target(w.resized).Voters:
		return permanentFirst
	}
	return fine
}

// raiseLimit restarts the etcd that has a lower limit on learners, so that it uses the configured one.
func (w *world) raiseLimit() bool {
	if w.lowered == 0 {
		return false
	}
	w.lowered = 0
	return true
}

// lowerLimit restarts an etcd with the limit 1, as an operator may do at any moment. With two learners in its data,
// that etcd would not start.
func (w *world) lowerLimit(i int) bool {
	h := &w.hosts[i]
	if w.lowered != 0 || w.limit < 2 || h.list == unlisted || h.unit != active || w.learners(-1) > 1 {
		return false
	}
	w.lowered = uint8(i) + 1
	w.markFaulted()
	return true
}

// learnerPromises returns the promises about permanent learners.
func learnerPromises() map[breach]promise {
	return map[breach]promise{
		limitsDiffer: {
			"P2", "a learner is added although the members' limits differ, so that their member lists would differ",
		},
		noPlaceForLearner: {"P2", "a learner is added although etcd's limit leaves no place for a replacement"},
		permanentVotes:    {"P2", "a host with the role learner joins as a voter, or its learner is promoted"},
		permanentFirst:    {"P2", "a permanent learner joins while a voter is missing"},
		permanentRemoved:  {"P4", "a permanent learner is removed although its host is not retired"},
		startsNoMore:      {"P2", "etcd is stopped although it would not start again with the limit on learners"},
	}
}

// smallLearners returns the scopes about permanent learners and the limit on learners that every test run explores.
func smallLearners() []Scenario {
	three := policy.Target{Voters: 3}
	return []Scenario{
		{
			Name: "a permanent learner joins", Hosts: 3, Voters: 1, Target: policy.Target{Voters: 1, Standbys: 1},
			Learner: LearnerJoins, MaxLearners: 2, Lowered: true, Liveness: true,
		},
		{
			Name: "a permanent learner joins, a lower limit or a crash", Hosts: 3, Voters: 1,
			Target: policy.Target{Voters: 1, Standbys: 1}, Learner: LearnerJoins, MaxLearners: 2,
			Faults: LimitChange | AgentCrash | LateCall, Budget: 1, Liveness: true,
		},
		{
			Name: "a permanent learner and a spare that does not become the standby", Hosts: 3, Voters: 1,
			Target: policy.Target{Voters: 1, Standbys: 1}, Learner: LearnerJoins, MaxLearners: 2, Unwilling: true,
			Liveness: true,
		},
		{
			Name: "a permanent learner and two spares, only one of them a future standby", Hosts: 4, Voters: 1,
			Target: policy.Target{Voters: 1, Standbys: 1}, Learner: LearnerJoins, MaxLearners: 2, Unwilling: true,
			Liveness: true,
		},
		{
			Name: "a permanent learner under etcd's default limit", Hosts: 3, Voters: 1,
			Target: policy.Target{Voters: 1, Standbys: 1}, Learner: LearnerJoins, MaxLearners: 1, Liveness: true,
		},
		{
			Name: "a voter joins next to a permanent learner", Hosts: 4, Voters: 2, Target: three,
			Learner: LearnerListed, MaxLearners: 2, Liveness: true,
		},
		{
			Name: "one host taken down next to a permanent learner", Hosts: 4, Voters: 3, Target: three, Requests: 1,
			Learner: LearnerListed, MaxLearners: 2, Liveness: true,
		},
		restartWithLowerLimit(),
	}
}

// restartWithLowerLimit returns a scope in which operators take down one host, and the next start of every etcd allows
// only one of the two listed learners.
func restartWithLowerLimit() Scenario {
	return Scenario{
		Name: "one host taken down, and its next start allows too few learners", Hosts: 3, Voters: 1,
		Target: policy.Target{Voters: 1, Standbys: 1}, Learner: LearnerDropped, MaxLearners: 2,
		NextLimit: 1, Requests: 1,
	}
}

// Learners returns all scopes about permanent learners and the limit on learners, including other operations and
// faults.
func Learners() []Scenario {
	three := policy.Target{Voters: 3}
	return append(smallLearners(),
		Scenario{
			Name: "a permanent learner joins next to two standbys", Hosts: 4, Voters: 1,
			Target: policy.Target{Voters: 1, Standbys: 1}, Learner: LearnerThird, MaxLearners: 3,
		},
		Scenario{
			Name: "a permanent learner and two standbys that leave no room for it", Hosts: 4, Voters: 1,
			Target: policy.Target{Voters: 1, Standbys: 1}, Learner: LearnerThird, MaxLearners: 2,
		},
		Scenario{
			Name: "a permanent learner joins, an unhealthy voter", Hosts: 4, Voters: 3, Target: three,
			Learner: LearnerJoins, MaxLearners: 2, Unhealthy: true, Faults: HealthChange, Budget: 1, Liveness: true,
		},
		Scenario{
			Name: "a permanent learner joins, a fault", Hosts: 3, Voters: 1,
			Target: policy.Target{Voters: 1, Standbys: 1}, Learner: LearnerJoins, MaxLearners: 2,
			Faults: AllFaults | LimitChange, Budget: 1, Liveness: true, Long: true,
		},
		Scenario{
			Name: "a voter joins next to a permanent learner, a fault", Hosts: 4, Voters: 2, Target: three,
			Learner: LearnerListed, MaxLearners: 2, Faults: AllFaults | LimitChange, Budget: 1, Liveness: true,
			Long: true,
		},
		Scenario{
			Name: "a dead voter replaced next to a permanent learner", Hosts: 5, Voters: 3, Target: three, Repair: true,
			Learner: LearnerListed, MaxLearners: 2, Faults: HostCrash, Budget: 1, Liveness: true, Long: true,
		},
		Scenario{
			Name: "a dead voter replaced by one of two standbys", Hosts: 5, Voters: 3,
			Target: policy.Target{Voters: 3, Standbys: 1}, Repair: true, Learner: LearnerDropped, MaxLearners: 2,
			Faults: HostCrash, Budget: 1, Long: true,
		},
		Scenario{
			Name:  "a dead voter next to a permanent learner that leaves no room for a replacement",
			Hosts: 5, Voters: 3, Target: three,
			Repair: true, Learner: LearnerListed, MaxLearners: 1, Faults: HostCrash, Budget: 1, Long: true,
		},
		Scenario{
			Name: "three voters become one next to a permanent learner", Hosts: 4, Voters: 3, Target: three,
			ResizeTo: 1, Learner: LearnerListed, MaxLearners: 2, Liveness: true,
		},
		Scenario{
			Name: "one host taken down next to a permanent learner, a fault", Hosts: 4, Voters: 3, Target: three,
			Requests: 1, Learner: LearnerListed, MaxLearners: 2, Faults: AllFaults | LimitChange, Budget: 1,
			Liveness: true, Long: true,
		},
	)
}
