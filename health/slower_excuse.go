// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package health

import "time"

// disagrees reports whether this disk is not the cause of slow writes: it is as fast as the other voters' disks or as
// in its own past, or it has been slower for no longer than usual at this hour. pending means that this is not known
// yet. If a comparison is possible, and neither the disk's own past nor an earlier comparison settles the question,
// each call records that the fsync check needs a comparison.
func (c *comparison) disagrees() (disagrees, pending bool) {
	if c.usual == 0 || len(c.peers.All) < peersFewest {
		return false, false
	}
	if c.habitual || c.likeLastWeek() || c.agreed() {
		c.excused, c.doubtSince = true, 0
		return true, false
	}
	if c.doubtAt = c.now; c.doubtSince == 0 {
		c.doubtSince = c.now
	}
	switch {
	case c.answered():
		wide := c.wideSince != 0 && c.now-c.wideSince >= c.pace.wide
		c.excused = c.p50 > 0 && !c.beyondHabit(0) && !wide && len(c.counting) >= peersFewest
		if c.excused {
			c.explained = c.now
		}
		// Still pending: if writes stay slow for long enough, the comparison has a finding of its own.
		return c.excused, !c.excused && c.p50 > 0 && !wide && c.track.State == OK && c.highest(atOnce) == nil
	case c.askedSince != 0:
		return false, c.now-c.askedSince < c.pace.answers
	}
	return false, c.now-c.doubtSince < c.pace.doubts+c.pace.answers/2
}

// likeLastWeek reports whether there is no climb, and the 90th percentile of the writes is about the same as in the
// last week. If such writes exceed the limit, they did so in the last week, too, and this host does not ask the other
// voters. It returns false while the history is young.
func (c *comparison) likeLastWeek() bool {
	return !c.climbing() && !c.history.Young() && c.p90 > 0 && c.p90 < agreedWithin*c.usual90
}

// asUsual reports whether the median and this 90th percentile are about the same as in the last week. It returns false
// while the history is young.
func (c *comparison) asUsual(p90 time.Duration) bool {
	return c.p50 > 0 && !c.history.Young() && float64(c.p50) < leaveBy*float64(c.usual) && p90 > 0 &&
		p90 < agreedWithin*c.usual90
}

// explain records whether the current spell is usual at this hour, and until when there was such a spell. A usual spell
// also explains its slow writes after it has ended.
func (c *comparison) explain() {
	climbs := c.climbing()
	switch habitual := climbs && !c.beyondHabit(0); {
	case habitual:
		c.habitual, c.habitualAt = true, c.now
	case c.habitual:
		c.habitual = false
		if !climbs {
			c.explained = c.now
		}
	}
}

// usualSpell reports whether the newest slow writes belong to a spell that is usual at this hour. It also covers the
// time after the spell in which the signs of SLOW still include its writes.
func (c *comparison) usualSpell() bool {
	return c.habitualAt != 0 && c.now-c.habitualAt < c.pace.afterwards && !c.beyondHabit(0)
}

// agreed reports whether the last comparison found the disk as fast as the other voters', and the disk is still about
// as fast as it was then, apart from slowness that is usual at this hour.
func (c *comparison) agreed() bool {
	if c.agreedAt == 0 || c.now-c.agreedAt >= agreedLongest || c.p50 == 0 || c.beyondHabit(0) {
		return false
	}
	habit := 1
	for _, r := range c.climbs {
		if r.since != 0 {
			habit = r.rung
		}
	}
	return c.p90 < time.Duration(agreedWithin*habit)*c.agreedP90
}

// agree records whether the other voters' answers show that the disk is as fast as theirs. An agreement needs answers
// for pace.wide, because the first answers may match by chance.
func (c *comparison) agree() {
	switch {
	case !c.answered() || c.p50 == 0:
	case c.beyondHabit(0) || c.wideSince != 0 && c.now-c.wideSince >= c.pace.wide || len(c.counting) < peersFewest:
		c.agreedAt = 0
	case c.wideSince == 0 && c.now-c.answeredSince >= c.pace.wide:
		if !c.agreed() {
			c.agreedP90 = time.Duration(float64(c.p90) / max(c.ownTimes, 1))
		}
		c.agreedAt = c.now
	}
}

// beyondHabit reports whether writes have taken a multiple of the usual time for at least hold, and for longer than the
// disk's habits explain.
func (c *comparison) beyondHabit(hold time.Duration) bool {
	for i := range c.climbs {
		if r := &c.climbs[i]; r.since != 0 && c.now-r.since >= max(r.explained(c), hold) {
			return true
		}
	}
	return false
}

// widen updates answeredSince and wideSince.
func (c *comparison) widen() {
	p90 := lowerMedian(c.counting, func(p PeerWrites) time.Duration { return p.P90 })
	switch {
	case !c.answered():
		c.answeredSince = 0
	case c.answeredSince == 0:
		c.answeredSince = c.now
	}
	switch {
	case c.p90 < wideTimes*p90 || c.times >= float64(Rungs()[0]) || !c.answered():
		c.wideSince = 0
	case c.wideSince == 0:
		c.wideSince = c.now
	}
}
