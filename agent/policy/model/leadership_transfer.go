// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package model

import (
	"time"

	"github.com/quorumd/quorumd/agent/policy"
	"github.com/quorumd/quorumd/health"
)

// An unhealthy leader may transfer leadership in any round. The transfer needs no lock. It changes nothing in a world
// in which every voter may lead in every view, so the model checks only the decision. leadership_transfer_test.go
// tracks the leader, and covers the interval between transfers.

// mayStepDown reports whether a host without an operation could transfer leadership if it led.
func (w *world) mayStepDown(h int) bool {
	a := &w.hosts[h]
	return a.health == slow && a.list == voter && w.serves(h) && !w.ownsOperation(h)
}

// The viewpoints from which a host observes: as a follower, as the leader, or as a leader whose member returns no
// linearizable read in time. The other viewpoints differ from leader only in the write measurements.
const (
	follower uint8 = iota
	leader
	leaderWithoutReads
	leaderNoneFaster   // no other voter publishes faster writes
	leaderNoneMeasured // no other voter publishes measurements
	leaderInHabit      // the other voters are faster, but the leader's disk is as slow as usual at this hour
	leaderAsUsual      // the other voters are a little faster, as they always are
	viewpoints
)

// The write measurements that the other voters publish.
const (
	faster uint8 = iota
	equal
	unpublished
	fasterThanHabit // faster than this host, whose writes are as slow as usual at this hour
	fasterAsUsual   // faster than this host, whose writes take about as long as in the last week
)

// The mean times of a write on a slow and on a fast disk.
const (
	slowMean  = 15 * time.Millisecond
	quickMean = 10 * time.Millisecond
)

// setViewpoint sets the viewpoint of an observation.
func (s *observation) setViewpoint(how uint8) {
	s.leads, s.noReads = bit(how != follower), bit(how == leaderWithoutReads)
	switch how {
	case leaderNoneFaster:
		s.writes = equal
	case leaderNoneMeasured:
		s.writes = unpublished
	case leaderInHabit:
		s.writes = fasterThanHabit
	case leaderAsUsual:
		s.writes = fasterAsUsual
	}
}

// comparesWrites reports whether the viewpoint differs from leader only in the write measurements.
func comparesWrites(how uint8) bool {
	return how == leaderNoneFaster || how == leaderNoneMeasured || how == leaderInHabit || how == leaderAsUsual
}

// writesOf returns the write measurements that a host publishes.
func (s *observation) writesOf(i int) policy.Writes {
	mean := quickMean
	switch s.writes {
	case equal:
		mean = slowMean
	case unpublished:
		mean = 0
	}
	if i == int(s.self) {
		mean = 0
	}
	return policy.Writes{Mean: mean, WriteFigures: policy.WriteFigures{P50: mean, P90: mean}}
}

// readsMayTimeOut reports whether a host could transfer leadership while no read from its member returns in time.
func (w *world) readsMayTimeOut(h int) bool { return w.mayStepDown(h) && w.reaches(h) }

// viewWithoutReads builds the view of a leader without linearizable reads. The view shows only what the leader's own
// member stores, and which voters follow that member.
func (s *observation) viewWithoutReads(target policy.Target, r rank) policy.View {
	local := *s
	local.noReads = 0
	led := local.view(target, r)
	led.Cluster.Led, led.Cluster.Unread = true, true
	blank := observation{
		n: s.n, self: s.self, hostRequest: s.hostRequest, unit: s.unit, data: s.data, stepFailed: s.stepFailed,
		recorded: s.recorded, health: s.health, backoff: s.backoff, request: s.request, env: s.env,
		removalState: s.removalState, leads: s.leads,
	}
	v := blank.view(target, r)
	v.Led = &led
	return v
}

// judgeStepDown checks whether leadership may be transferred, and to which voter.
func (w *world) judgeStepDown(h, to int) breach {
	a, t := &w.hosts[h], &w.hosts[to]
	removed := w.opRemove != 0 || w.rmRequested != 0 && int(w.rmHost) == h
	switch {
	case w.ownsOperation(h) || w.recordDeleted(h) || w.owns(h) || a.health != slow:
		return steppedDownDuringOperation
	case t.list != voter || !w.serves(to):
		return steppedDownToDead
	case !w.present(to) || t.health == slow || t.health == unknown:
		return steppedDownToWorse
	case t.work != noWork && !w.requestOver(to), t.inOperation(), w.ownsOperation(to), removed && int(w.rmTarget) == to:
		return steppedDownToTaken
	}
	return fine
}

// judgeComparison checks that a slow leader transfers leadership only to a voter with faster writes, and not because of
// writes that take about as long as usual. If no read returns in time, the leader has no measurements to compare.
func judgeComparison(s *observation, c choice) breach {
	switch {
	case c.step != stepDown || s.noReads != 0 || s.writes == faster:
		return fine
	case s.writes == fasterThanHabit, s.writes == fasterAsUsual:
		return steppedDownInHabit
	}
	return steppedDownToSlower
}

// others returns a mistake in what a view shows about the other hosts.
func others(change func(v *policy.View, h *policy.Host)) rules {
	return seeing(func(v *policy.View) {
		for i := range v.Hosts {
			if v.Hosts[i].ID != v.Self.ID {
				change(v, &v.Hosts[i])
			}
		}
	})
}

// slowLeaderMistakes returns the mistakes about the comparison of a leader's slow writes with another voter's, or with
// the leader's own past.
func slowLeaderMistakes() []Mistake {
	return []Mistake{
		{
			Name:   "a slow leader transfers leadership to a voter whose writes are just as slow",
			breach: steppedDownToSlower,
			scope:  clusterWith(2, 2, 1, HealthChange),
			rules:  others(func(_ *policy.View, h *policy.Host) { h.Writes.Mean = min(h.Writes.Mean, quickMean) }),
		},
		{
			Name:   "a slow leader transfers leadership to a voter whose median is just as slow",
			breach: steppedDownToSlower,
			scope:  clusterWith(2, 2, 1, HealthChange),
			rules:  others(func(_ *policy.View, h *policy.Host) { h.Writes.P50 = min(h.Writes.P50, quickMean) }),
		},
		{
			Name:   "a slow leader transfers leadership to a voter whose measurement is unknown",
			breach: steppedDownToSlower,
			scope:  clusterWith(2, 2, 1, HealthChange),
			rules: others(func(_ *policy.View, h *policy.Host) {
				if h.Writes.Mean == 0 {
					h.Writes.Mean = quickMean
				}
			}),
		},
		{
			Name: "a slow leader does not compare measurements", breach: steppedDownToSlower,
			scope: clusterWith(2, 2, 1, HealthChange),
			rules: seeing(func(v *policy.View) { v.Health.SlowWrites = v.Health.SlowWrites && v.Health.Habitual }),
		},
		{
			Name:   "a leader transfers leadership although its disk is as slow as usual at this hour",
			breach: steppedDownInHabit, scope: clusterWith(2, 2, 1, HealthChange),
			rules: seeing(func(v *policy.View) { v.Health.Habitual = false }),
		},
		{
			Name:   "a leader transfers leadership although its disk is a little slower than the others, as always",
			breach: steppedDownInHabit, scope: clusterWith(2, 2, 1, HealthChange),
			rules: seeing(func(v *policy.View) { v.Health.AsUsual = false }),
		},
	}
}

// stepDownMistakes returns the mistakes about an unhealthy leader.
func stepDownMistakes() []Mistake {
	local := func(change func(led *policy.View)) rules {
		return seeing(func(v *policy.View) {
			if v.Led != nil {
				change(v.Led)
			}
		})
	}
	// With two voters, the voter that does not lead is always the best candidate.
	withRequest := func(sc *Scenario) { clusterWith(2, 2, 1, HealthChange)(sc); sc.Requests = 1 }
	return []Mistake{
		{
			Name: "leadership is transferred to a host that is about to be taken down", breach: steppedDownToTaken,
			scope: withRequest, rules: others(func(_ *policy.View, h *policy.Host) { h.Wants, h.Waiting = "", "" }),
		},
		{
			Name: "leadership is transferred to a member that is being removed", breach: steppedDownToTaken,
			scope: func(sc *Scenario) { clusterWith(3, 3, 1, HealthChange)(sc); sc.Removals = 1 },
			rules: seeing(func(v *policy.View) {
				if v.Op != nil && v.Op.Host != v.Self.ID {
					v.Op.MemberID = 0
				}
			}),
		},
		{
			Name: "leadership is transferred to another unhealthy voter", breach: steppedDownToWorse,
			scope: clusterWith(2, 2, 2, HealthChange),
			rules: others(func(_ *policy.View, h *policy.Host) { h.Health = health.OK }),
		},
		{
			Name: "leadership is transferred to a voter whose health is unknown", breach: steppedDownToWorse,
			scope: clusterWith(2, 2, 2, HealthChange),
			rules: others(func(_ *policy.View, h *policy.Host) {
				if h.Health == health.Unknown {
					h.Health = health.OK
				}
			}),
		},
		{
			Name:   "a leader mistakes voters that are down for live ones, and transfers leadership to one",
			breach: steppedDownToDead, scope: clusterWith(3, 3, 2, HealthChange|EtcdCrash),
			rules: seeing(func(v *policy.View) {
				eachMember(v, func(m *policy.Member) { m.Live = m.Live == (m.PeerURL == v.Self.PeerURL) })
			}),
		},
		{
			Name: "a leader transfers leadership during its own operation", breach: steppedDownDuringOperation,
			scope: func(sc *Scenario) { clusterWith(3, 3, 1, HealthChange)(sc); sc.Requests = 1 },
			rules: seeing(func(v *policy.View) { v.Lock.Mine = v.Lock.Mine && v.Op != nil }),
		},
		{
			Name:   "a leader whose reads time out ignores the pause that its member stores",
			breach: stepWhilePaused, scope: clusterWith(2, 2, 2, HealthChange|OperatorPause),
			rules: local(func(led *policy.View) { led.Pause = nil }),
		},
		{
			Name:   "a leader whose reads time out ignores the operation that its member stores",
			breach: steppedDownToTaken,
			scope:  func(sc *Scenario) { clusterWith(3, 3, 1, HealthChange)(sc); sc.Removals = 1 },
			rules:  local(func(led *policy.View) { led.Op = nil }),
		},
		{
			Name:   "a leader whose reads time out counts every voter as a follower",
			breach: steppedDownToDead, scope: clusterWith(3, 3, 2, HealthChange|EtcdCrash),
			rules: local(func(led *policy.View) {
				eachMember(led, func(m *policy.Member) { m.Live, m.LiveFor = true, ages })
			}),
		},
	}
}
