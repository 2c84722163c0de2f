// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package health

import (
	"slices"
	"time"
)

// comparison is the evidence that this disk's writes take a multiple of the usual time: of the other voters' time and
// of its own in the last week, whichever is longer. A workload that slows all voters down is not this disk's fault, and
// neither is a disk that has always been slower. slower_rules.go has its rules and texts.
//
// At rest no voter publishes its write time. A host whose writes take longer than its own past explains asks for it.
type comparison struct {
	pace    comparisonPace
	limits  Thresholds
	track   *track
	disk    *track // the track of the check of fsync
	history History

	// The newest reading.
	now   time.Duration
	wall  time.Time
	peers PeerWritesReading
	young []PeerWrites

	recent   samples // judged samples of the last span
	p50, p90 time.Duration
	usual    time.Duration // the median of the last week; 0 if unknown
	times    float64       // how many times the usual time a write takes now; 0 if unknown or immaterial
	climbs   []climb       // one climb for each rung
	// wideSince is since when the slowest tenth, but not the median, has taken longer than on the other voters; or 0
	wideSince time.Duration
	// answeredSince is since when enough other voters have published, without a break; or 0
	answeredSince time.Duration
	episodes      []time.Duration
	lastSlow      time.Duration // when the newest slow write completed

	// The finding.
	rung   int  // that was exceeded; 0 if only tails were
	tailed bool // too many slow episodes
	wellAt time.Duration
	since  time.Duration // when the writes became slow

	askedSince time.Duration // 0 if this host does not ask
	reasonAt   time.Duration // when there was last a reason to ask
	doubted    bool          // the check of fsync wants to compare its finding
	excused    bool          // the comparison disagreed with that finding
	agreedAt   time.Duration // when the other voters' answers last excused it, at the earliest agreedLongest ago
	agreedP90  time.Duration // the P90 of this disk at agreedAt
	minuteAt   time.Duration // when a minute was last learned
}

// climb is how long the writes have taken at least as many times the usual time as a rung.
type climb struct {
	rung  int
	since time.Duration // 0 if they do not
	began time.Time
}

// comparisonPace holds the times of a comparison.
type comparisonPace struct {
	span      time.Duration // of the recent writes
	asks      time.Duration // how long before a comparison is needed a host asks for it, at most
	answers   time.Duration // how long the other voters may take to answer
	lingers   time.Duration // how long a host asks after its last reason
	well      time.Duration // how long the writes must be fast again
	wide      time.Duration // how long the slowest tenth must differ from the others'
	youngHold time.Duration // the shortest spell that counts while the history is young
	tails     time.Duration // the span of the slow episodes
	tailsWell time.Duration // how long there must be no slow episode
	episode   time.Duration // slow writes closer together are one episode
	scale     float64
}

const (
	// writesMaterial is the excess over the usual time below which a multiple is immaterial.
	writesMaterial = 500 * time.Microsecond
	// writesKept bounds the recent samples, and writesNeeded is how many a median needs.
	writesKept, writesNeeded = 512, 10
	// climbStays is the part of a rung below which a climb ends: a median of forty samples varies.
	climbStays = 0.85
	// leaveBy is the part of the rung within which the writes are fast again.
	leaveBy = 1.5
	// habitTimes is how many times longer than usual at this hour a spell must last.
	habitTimes = 1.5
	// tailsFewest slow episodes count, if they are tailsTimes as many as the other voters' and as usual.
	tailsFewest, tailsTimes = 8, 4
	tailsKept               = 128
	// agreedLongest is how long an answer of the other voters counts while the disk is as fast as in its own past.
	agreedLongest = 6 * time.Hour
	// An agreement ends once the slowest tenth takes agreedWithin times as long as when it was reached.
	agreedWithin = 2
)

func newComparison(t Thresholds) *comparison {
	part := float64(min(t.Window, 300)) / 300
	scaled := func(d time.Duration) time.Duration { return time.Duration(float64(d) * part) }
	c := &comparison{limits: t, track: &track{}, disk: &track{}, pace: comparisonPace{
		span: max(scaled(40*time.Second), 20*t.DirectInterval), asks: scaled(30 * time.Second),
		answers: max(scaled(30*time.Second), 10*time.Second), lingers: scaled(time.Minute),
		well: scaled(5 * time.Minute), wide: scaled(2 * time.Minute), youngHold: scaled(10 * time.Minute),
		tails:     scaled(2 * time.Hour),
		tailsWell: scaled(30 * time.Minute), episode: scaled(10 * time.Second), scale: part,
	}}
	for _, r := range Rungs() {
		c.climbs = append(c.climbs, climb{rung: r})
	}
	return c
}

// hold returns how long the writes must take that many times the usual time.
func (p comparisonPace) hold(rung int) time.Duration {
	base := 20 * time.Second
	switch {
	case rung < 3:
		base = 300 * time.Second
	case rung < 4:
		base = 120 * time.Second
	case rung < 8:
		base = 60 * time.Second
	}
	return time.Duration(float64(base) * p.scale)
}

// read does nothing: see observe.
func (c *comparison) read(Input) {}

func (c *comparison) begin(now time.Duration) { c.now, c.minuteAt = now, now }

// observe processes new input. The check of fsync calls it first, because it depends on the comparison.
func (c *comparison) observe(in Input) {
	c.now, c.wall, c.peers = in.Now, in.Wall, in.Peers
	c.young = in.Peers.young(peersOldest)
	if c.disk.State == Qualifying {
		c.forget() // bursts are not comparable with rest
	} else {
		c.take(in.Disk.Samples)
	}
	c.compare()
	c.widen()
	for i := range c.climbs {
		c.climbs[i].follow(c)
	}
	if !c.fast() {
		c.wellAt = c.now
	}
	c.ask()
	c.learn()
}

// forget drops the recent samples.
func (c *comparison) forget() {
	c.recent, c.p50, c.p90 = nil, 0, 0
	c.episodes = nil
}

// take adds the judged samples, and measures.
func (c *comparison) take(all []Sample) {
	for _, s := range all {
		if s.Contaminated {
			continue
		}
		c.recent = append(c.recent, s)
		if s.Latency > c.limits.FsyncSlow {
			if c.lastSlow == 0 || s.End-c.lastSlow >= c.pace.episode {
				c.episodes = append(c.episodes, s.End)
				c.learnTail()
			}
			c.lastSlow = s.End
		}
	}
	old := len(c.recent) - len(c.recent.since(c.now-c.pace.span))
	c.recent = slices.Delete(c.recent, 0, max(old, len(c.recent)-writesKept))
	c.episodes = slices.DeleteFunc(c.episodes, func(at time.Duration) bool { return c.now-at > c.pace.tails })
	c.episodes = c.episodes[max(0, len(c.episodes)-tailsKept):]
	if len(all) == 0 && old == 0 {
		return
	}
	c.p50, c.p90 = 0, 0
	if len(c.recent) >= writesNeeded {
		sorted := c.recent.spread()
		c.p50, c.p90 = sorted.at(500), sorted.at(900)
	}
}

// compare updates how many times the usual time a write takes.
func (c *comparison) compare() {
	c.times = 0
	usual := max(c.usual, c.others())
	if c.p50 == 0 || c.usual == 0 || c.p50-usual < writesMaterial {
		return
	}
	c.times = float64(c.p50) / float64(usual)
}

// others returns the lower median of the other voters' medians; 0 if too few have published one.
func (c *comparison) others() time.Duration {
	if !c.answered() {
		return 0
	}
	return lowerMedian(c.young, func(p PeerWrites) time.Duration { return p.P50 })
}

// answered reports whether enough other voters have published how long their writes take.
func (c *comparison) answered() bool { return len(c.young) >= peersFewest }

// follow updates a climb. One that ends by itself is a habit, and is learned.
func (r *climb) follow(c *comparison) {
	rung := float64(r.rung)
	switch {
	case r.since == 0 && c.times >= rung:
		r.since, r.began = c.now, c.wall
	case r.since != 0 && c.times < climbStays*rung:
		lasted := c.now - r.since
		// Without samples, or while the load slows all voters down, the end says nothing about this disk's habits.
		unproven := c.p50 == 0 || float64(c.p50) >= climbStays*rung*float64(c.usual)
		switch {
		case unproven:
		case !c.ill() && lasted < r.needs(c):
			c.history.AddSpell(r.began, r.rung, lasted)
		default:
			c.history.AddFound(r.began, r.rung, lasted)
		}
		r.since = 0
	}
}

// needs returns how long a climb must last to be a finding.
func (r *climb) needs(c *comparison) time.Duration {
	hold := c.pace.hold(r.rung)
	if c.history.Young() {
		hold = max(hold, c.pace.youngHold)
	}
	return max(hold, time.Duration(habitTimes*float64(c.history.Longest(c.wall, r.rung))))
}

// highest returns the highest rung that has been exceeded for long enough, allowing for a lead time.
func (c *comparison) highest(lead func(rung int) time.Duration) *climb {
	for i := len(c.climbs) - 1; i >= 0; i-- {
		r := &c.climbs[i]
		if r.since != 0 && c.now-r.since >= r.needs(c)-lead(r.rung) {
			return r
		}
	}
	return nil
}

func atOnce(int) time.Duration { return 0 }

// asksBefore returns how long before a finding the other voters are asked.
func (c *comparison) asksBefore(rung int) time.Duration {
	return min(c.pace.asks, 2*c.pace.hold(rung)/3)
}

// ask updates whether this host asks the other voters for how long their writes take.
func (c *comparison) ask() {
	if c.highest(c.asksBefore) != nil || c.tailing(0) || c.doubted || c.track.State == Warm {
		c.reasonAt = c.now
		if c.askedSince == 0 {
			c.askedSince = c.now
		}
	} else if c.now-c.reasonAt >= c.pace.lingers {
		c.askedSince = 0
	}
	c.doubted = false
}

// tailing reports whether there are too many slow episodes, compared with the given number and with the usual one.
func (c *comparison) tailing(others int) bool {
	n := len(c.episodes)
	return n >= tailsFewest && n >= tailsTimes*others &&
		float64(n) >= tailsTimes*c.history.UsualTails(c.pace.tails) && c.usual > 0
}

// othersTails returns the lower median of the other voters' slow episodes.
func (c *comparison) othersTails() int {
	return lowerMedian(c.young, func(p PeerWrites) int { return p.Tails })
}

// ill reports whether there is a finding. Then nothing is learned: the disk must not get used to its own fault.
func (c *comparison) ill() bool {
	return c.track.State == Warm || c.disk.State == Slow || c.disk.State == Stalled || c.disk.State == Failed
}

// learn adds a minute to the history.
func (c *comparison) learn() {
	if c.now-c.minuteAt < time.Minute {
		return
	}
	c.minuteAt = c.now
	// A climb that waits for the other voters' answer may turn out to be a finding.
	if c.p50 > 0 && !c.ill() && c.highest(c.asksBefore) == nil {
		c.history.Add(c.wall, c.p50)
	}
	c.usual, _ = c.history.Median()
}

func (c *comparison) learnTail() {
	if !c.ill() && !c.tailing(0) {
		c.history.AddTail(c.wall)
	}
}

// disagrees reports whether the disk is as fast as the other voters' and as its own past, or slower for no longer than
// it often is at this hour: what slows the writes down is not this disk, or passes. pending reports whether that is not
// known yet. Either way the check of fsync has a reason to ask.
func (c *comparison) disagrees() (disagrees, pending bool) {
	agreed := c.agreedAt != 0 && c.now-c.agreedAt < agreedLongest && len(c.peers.All) >= peersFewest &&
		c.p90 < agreedWithin*c.agreedP90
	if agreed && !c.answered() && c.p50 > 0 && !c.beyondHabit() {
		c.excused = true
		return true, false
	}
	c.doubted = !agreed || c.beyondHabit()
	if c.usual == 0 || len(c.peers.All) < peersFewest {
		return false, false
	}
	if !c.answered() {
		return false, c.askedSince == 0 || c.now-c.askedSince < c.pace.answers
	}
	c.excused = c.p50 > 0 && !c.beyondHabit() && (c.wideSince == 0 || c.now-c.wideSince < c.pace.wide)
	// The first answers may differ by chance: an agreement needs answers for as long as a difference would.
	lasting := c.wideSince == 0 && c.answeredSince != 0 && c.now-c.answeredSince >= c.pace.wide
	switch {
	case !c.excused:
		c.agreedAt = 0
	case !agreed && lasting:
		c.agreedAt, c.agreedP90 = c.now, c.p90
	}
	return c.excused, false
}

// beyondHabit reports whether the writes have taken a multiple of the usual time for longer than the disk's habits
// explain. The caller has another finding, so the multiple need not have lasted for a minimum time.
func (c *comparison) beyondHabit() bool {
	return slices.ContainsFunc(c.climbs, func(r climb) bool {
		return r.since != 0 && c.now-r.since >= time.Duration(habitTimes*float64(c.history.Longest(c.wall, r.rung)))
	})
}

// widen notes since when the slowest tenth of the writes takes longer than on the other voters, while the median does
// not.
func (c *comparison) widen() {
	p90 := lowerMedian(c.young, func(p PeerWrites) time.Duration { return p.P90 })
	switch {
	case !c.answered():
		c.answeredSince = 0
	case c.answeredSince == 0:
		c.answeredSince = c.now
	}
	switch {
	case c.p90 < 2*p90 || c.times >= float64(Rungs()[0]) || !c.answered():
		c.wideSince = 0
	case c.wideSince == 0:
		c.wideSince = c.now
	}
}

// report adds how long writes take, and whether this host asks.
func (c *comparison) report(v *Assessment) {
	v.Writes.P50, v.Writes.P90, v.Writes.Tails = c.p50, c.p90, len(c.episodes)
	v.AsksPeers = c.askedSince != 0
}

// History returns what the judge has learned about the disk; the caller stores it.
func (j *Judge) History() ([]byte, error) { return j.compared.history.Encode() }

// UseHistory sets what the judge has learned about the disk.
func (j *Judge) UseHistory(h History) {
	j.compared.history = h
	j.compared.usual, _ = h.Median()
}
