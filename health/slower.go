// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package health

import (
	"slices"
	"time"

	"golang.org/x/time/rate"
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
	disk    *track // of the check of fsync
	history History

	// The newest reading.
	now      time.Duration
	elapsed  time.Duration // since the reading before
	wall     time.Time
	peers    PeerWritesReading
	young    []PeerWrites // what the other voters have published lately
	counting []PeerWrites // what counts of it

	recent   samples // judged samples of the last span
	p50, p90 time.Duration
	usual    time.Duration // the median of the last week; 0 if unknown
	usual90  time.Duration // the same of the slowest tenth
	times    float64       // how many times the usual time a write takes now; 0 if unknown or immaterial
	ownTimes float64       // the same, compared with its own past only
	climbs   []climb       // by rung
	// wideSince is since when the slowest tenth, but not the median, has taken longer than on the other voters; or 0
	wideSince time.Duration
	// answeredSince is since when enough other voters have published, without a break; or 0
	answeredSince time.Duration
	episodes      []time.Duration
	lastSlow      time.Duration // the newest slow write

	// The finding.
	rung   int  // that was exceeded; 0 if only tails were
	tailed bool // too many slow episodes
	wellAt time.Duration
	since  time.Duration // when the writes became slow

	askedSince time.Duration // 0 if this host does not ask
	reasonAt   time.Duration // when there was last a reason to ask
	asked      *rate.Limiter // bounds how often it begins to ask
	doubtSince time.Duration // when the check of fsync began to want a comparison of its finding; 0 if it does not
	doubtAt    time.Duration // when it last wanted one
	excused    bool          // and the comparison disagreed
	habitual   bool          // a spell lasts that the disk's habits explain
	explained  time.Duration // until when the comparison or the habits explain slow writes
	agreedAt   time.Duration // when the other voters' answers last excused it, at the earliest agreedLongest ago
	agreedP90  time.Duration // of this disk then, divided by the multiple of its usual time
	minuteAt   time.Duration // when a minute was last learned
	checked    bool          // the identities of the disks have been compared with those of the history
}

// climb is how long the writes have taken at least as many times the usual time as a rung.
type climb struct {
	rung  int
	since time.Duration // 0 if they do not; the time without samples does not count
	began time.Time
	gap   time.Duration // how long there have been too few samples

	habit     time.Duration // how long such a spell may last at this hour, by the history
	habitHour int           // of the day to which that applies; 0: unknown, otherwise one more
}

// comparisonPace holds the times of a comparison.
type comparisonPace struct {
	span      time.Duration // of the recent writes
	asks      time.Duration // how long before it is needed a comparison is asked for, at most
	answers   time.Duration // how long the other voters may take to answer
	lingers   time.Duration // how long a host asks after its last reason
	doubts    time.Duration // how long the check of fsync must want a comparison before the host asks
	gap       time.Duration // how long a climb waits for samples
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
	writesMaterial = 750 * time.Microsecond
	// writesKept bounds the recent samples, and writesNeeded is how many a median needs.
	writesKept, writesNeeded = 512, 10
	// climbStays is the part of the multiple at which a climb begins below which it ends: a median of forty samples
	// varies. So a climb also begins below its rung, by climbBegins; only the lowest rung does not, because the load of
	// the day comes close to it.
	climbStays, climbBegins = 0.85, 0.85
	// leaveBy is the part of the rung within which the writes are fast again.
	leaveBy = 1.5
	// habitTimes is how many times longer than usual at this hour a spell must last.
	habitTimes = 1.5
	// tailsFewest slow episodes count, if they are tailsTimes as many as the other voters' and as usual.
	tailsFewest, tailsTimes = 8, 4
	tailsKept               = 128
	// agreedLongest is how long an answer of the other voters counts while the disk is as fast as in its own past.
	agreedLongest = 24 * time.Hour
	// agreedWithin is the multiple of its slowest tenth at the agreement from which on a disk is compared again.
	agreedWithin = 2
	// wideTimes is the multiple of the other voters' slowest tenth that counts although the median is the same.
	wideTimes = 3
	// asksMost is how often a host may begin to ask in a row, and asksEvery the time after which it may once more.
	asksMost, asksEvery = 4, 20 * time.Minute
)

func newComparison(t Thresholds) *comparison {
	part := float64(min(t.Window, 300)) / 300
	scaled := func(d time.Duration) time.Duration { return time.Duration(float64(d) * part) }
	c := &comparison{limits: t, track: &track{}, disk: &track{}, pace: comparisonPace{
		span: max(scaled(40*time.Second), 20*t.DirectInterval), asks: scaled(15 * time.Second),
		answers: max(scaled(30*time.Second), 10*time.Second), lingers: scaled(3 * time.Minute),
		doubts: scaled(time.Minute), gap: scaled(5 * time.Minute),
		well: scaled(5 * time.Minute), wide: scaled(2 * time.Minute), youngHold: scaled(10 * time.Minute),
		tails:     scaled(2 * time.Hour),
		tailsWell: scaled(30 * time.Minute), episode: scaled(10 * time.Second), scale: part,
	}}
	c.asked = rate.NewLimiter(rate.Every(scaled(asksEvery)), asksMost)
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
	case rung < 6:
		base = 40 * time.Second
	case rung < 8:
		base = 30 * time.Second
	}
	return time.Duration(float64(base) * p.scale)
}

// read does nothing: see observe.
func (c *comparison) read(Input) {}

func (c *comparison) begin(now time.Duration) { c.now, c.minuteAt = now, now }

// observe processes new input. The check of fsync calls it first, because it depends on the comparison.
func (c *comparison) observe(in Input) {
	c.elapsed = in.Now - c.now
	c.now, c.wall, c.peers = in.Now, in.Wall, in.Peers
	c.young = in.Peers.young(peersOldest)
	c.counting = believed(c.young, c.usual)
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
	c.explain()
	c.agree()
	c.ask()
	c.learn(in.Devices)
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
	c.times, c.ownTimes = 0, 0
	if c.p50 == 0 || c.usual == 0 {
		return
	}
	if c.p50-c.usual >= writesMaterial {
		c.ownTimes = float64(c.p50) / float64(c.usual)
	}
	if usual := max(c.usual, c.others()); c.p50-usual >= writesMaterial {
		c.times = float64(c.p50) / float64(usual)
	}
}

// others returns the lower median of the other voters' medians; 0 if too few have published one.
func (c *comparison) others() time.Duration {
	if !c.answered() {
		return 0
	}
	return lowerMedian(c.counting, func(p PeerWrites) time.Duration { return p.P50 })
}

// answered reports whether enough other voters have published how long their writes take.
func (c *comparison) answered() bool { return len(c.young) >= peersFewest }

// follow updates a climb. One that ends by itself is a habit, and is learned. While there are too few samples, as under
// CPU starvation, a climb neither continues nor ends, for a bounded time.
func (r *climb) follow(c *comparison) {
	begins := r.begins()
	if r.since != 0 && c.p50 == 0 {
		r.since += c.elapsed
		if r.gap += c.elapsed; r.gap > c.pace.gap {
			r.since = 0
		}
		return
	}
	r.gap = 0
	switch {
	case r.since == 0 && c.times >= begins:
		r.since, r.began = c.now, c.wall
	case r.since != 0 && c.times < climbStays*begins:
		lasted := c.now - r.since
		// While the load slows all voters down, the end says nothing about this disk's habits.
		unproven := float64(c.p50) >= climbStays*begins*float64(c.usual)
		switch {
		case unproven:
		case !c.ill() && lasted < r.needs(c):
			c.history.AddSpell(r.began, r.rung, lasted)
		default:
			c.history.AddFound(r.began, r.rung, lasted)
		}
		r.since = 0
		c.learned()
	}
}

// begins returns the multiple at which a climb begins.
func (r *climb) begins() float64 {
	if r.rung == Rungs()[0] {
		return float64(r.rung)
	}
	return climbBegins * float64(r.rung)
}

// needs returns how long a climb must last to be a finding.
func (r *climb) needs(c *comparison) time.Duration {
	hold := c.pace.hold(r.rung)
	if c.history.Young() {
		hold = max(hold, c.pace.youngHold)
	}
	return max(hold, r.explained(c))
}

// explained returns how long a spell may last that the disk's habits at this hour explain. The result is kept, because
// it rarely changes: see learn.
func (r *climb) explained(c *comparison) time.Duration {
	if hour := c.wall.UTC().Hour() + 1; hour != r.habitHour {
		r.habit, r.habitHour = time.Duration(habitTimes*float64(c.history.Longest(c.wall, r.rung))), hour
	}
	return r.habit
}

// learned makes all climbs consult the history again.
func (c *comparison) learned() {
	for i := range c.climbs {
		c.climbs[i].habitHour = 0
	}
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

// ask updates whether this host asks the other voters for how long their writes take. It asks once in each spell:
// while its writes take longer than its own past explains, it continues.
func (c *comparison) ask() {
	if c.doubtSince != 0 && c.now-c.doubtAt >= c.pace.doubts {
		c.doubtSince = 0
	}
	doubted := c.doubtSince != 0 && c.now-c.doubtSince >= c.pace.doubts
	switch {
	case c.highest(c.asksBefore) != nil, c.tailing(0), doubted, c.track.State == Warm:
		c.reasonAt = c.now
		if c.askedSince == 0 && c.asked.AllowN(time.Unix(0, int64(c.now)), 1) {
			c.askedSince = c.now
		}
	case c.askedSince != 0 && c.ownTimes >= climbStays*float64(Rungs()[0]):
		c.reasonAt = c.now
	case c.now-c.reasonAt >= c.pace.lingers:
		c.askedSince = 0
	}
}

// tailing reports whether there are too many slow episodes, compared with the given number and with the usual one.
func (c *comparison) tailing(others int) bool {
	n := len(c.episodes)
	return n >= tailsFewest && n >= tailsTimes*others &&
		float64(n) >= tailsTimes*c.history.UsualTails(c.pace.tails) && c.usual > 0
}

// othersTails returns the lower median of the other voters' slow episodes.
func (c *comparison) othersTails() int {
	return lowerMedian(c.counting, func(p PeerWrites) int { return p.Tails })
}

// ill reports whether there is a finding. Then nothing is learned: the disk must not get used to its own fault.
func (c *comparison) ill() bool {
	return c.track.State == Warm || c.disk.State == Slow || c.disk.State == Stalled || c.disk.State == Failed
}

// learn adds a minute to the history, after checking that it is about the present disks.
func (c *comparison) learn(devices DevicesReading) {
	if !c.checked && len(devices.Chain) > 0 {
		c.identify(devices)
	}
	if c.now-c.minuteAt < time.Minute {
		return
	}
	c.identify(devices)
	c.learned()
	c.minuteAt = c.now
	// A climb that waits for the other voters' answer may turn out to be a finding.
	if c.p50 > 0 && !c.ill() && c.highest(c.asksBefore) == nil {
		c.history.Add(c.wall, c.p50, c.p90)
	}
	c.remember()
}

// remember updates how long the writes usually take.
func (c *comparison) remember() {
	c.usual, _ = c.history.Median()
	c.usual90, _ = c.history.P90()
}

// identify starts an empty history if the disks have been replaced.
func (c *comparison) identify(devices DevicesReading) {
	if len(devices.Chain) == 0 {
		return
	}
	c.checked = true
	c.history = c.history.Of(devices.Identities())
	c.remember()
}

func (c *comparison) learnTail() {
	if !c.ill() && !c.tailing(0) {
		c.history.AddTail(c.wall)
	}
}

// report adds how long writes take, and whether this host asks.
func (c *comparison) report(v *Assessment) {
	v.Writes.P50, v.Writes.P90, v.Writes.Tails = c.p50, c.p90, len(c.episodes)
	v.AsksPeers = c.askedSince != 0
	if c.disk.State == Slow || c.disk.State == Stalled || c.disk.State == Failed {
		v.HealsAfter = c.history.LongestSlow()
		v.Defective = c.history.RecursSlow() || slices.ContainsFunc(v.Findings, Finding.ofDefect)
	}
	if c.track.State == Warm && (!c.fast() || c.tailed && c.now-c.lastSlow < c.pace.tailsWell) {
		v.SlowNow = true
	}
}

// ofDefect reports whether a finding means that a drive is breaking.
func (f Finding) ofDefect() bool {
	return f.Code == DriveFailing || f.Code == DriveErrorsGrown || f.Code == DeviceErrors
}

// History returns what the judge has learned about the disk; the caller stores it.
func (j *Judge) History() ([]byte, error) { return j.compared.history.Encode() }

// UseHistory sets what the judge has learned about the disk.
func (j *Judge) UseHistory(h History) {
	j.compared.history, j.compared.checked = h, false
	j.compared.learned()
	j.compared.remember()
}
