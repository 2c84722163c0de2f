// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package health

import (
	"slices"
	"time"

	"golang.org/x/time/rate"

	"github.com/quorumd/quorumd/disk"
)

// comparison is the evidence on whether this disk's writes take a multiple of the usual time: the other voters' current
// write time or this disk's own in the last week, whichever is longer. Neither a workload that slows all voters down
// nor a disk that has always been slower is a fault. The rules and texts are in slower.go.
//
// A rung is a multiple of the usual time, and a spell is a period in which writes took at least a rung times the usual
// time: see [History]. A slow episode is a group of writes over [Thresholds.FsyncSlow].
//
// Normally no voter publishes its write time. If a host's writes take longer than its own past explains, it asks the
// other voters to publish theirs.
type comparison struct {
	pace    comparisonPace
	limits  Thresholds
	track   *track
	disk    *track // state of the fsync check
	history History

	// The newest reading.
	now      time.Duration
	elapsed  time.Duration // time since the previous reading
	wall     time.Time
	peers    PeerWritesReading
	young    []PeerWrites // recent figures published by the other voters
	counting []PeerWrites // the part of young that counts: see credible

	recent   samples // uncontaminated samples within pace.span
	p50, p90 time.Duration
	usual    time.Duration // median of the last week; 0 if unknown
	usual90  time.Duration // 90th percentile of the last week; 0 if unknown
	times    float64       // current median as a multiple of the usual time; 0 if unknown or immaterial
	ownTimes float64       // the same multiple, of this disk's own past only
	climbs   []climb       // by rung
	// wideSince is when the 90th percentile, but not the median, became a multiple of the other voters'; 0 if it is not
	wideSince time.Duration
	// answeredSince is the time since which enough other voters have continuously published; 0 if too few do
	answeredSince time.Duration
	episodes      []time.Duration
	lastSlow      time.Duration // end of the newest slow write

	// The finding.
	rung   int  // the multiple that was exceeded; 0 without a finding, or for too many slow episodes
	tailed bool // too many slow episodes
	wellAt time.Duration
	since  time.Duration // when the writes became slow

	askedSince time.Duration // when this host began to ask; 0 if it does not ask
	reasonAt   time.Duration // when there was last a reason to ask
	asked      *rate.Limiter // limits how often this host begins to ask
	doubtSince time.Duration // when the fsync check began to need a comparison; 0 if it does not
	doubtAt    time.Duration // when the fsync check last needed a comparison
	excused    bool          // the other voters, or the disk's own past, show that this disk is not the cause
	habitual   bool          // the disk's habits explain the current spell
	habitualAt time.Duration // when the disk's habits last explained a spell; 0 if never
	explained  time.Duration // end of the slow writes that the comparison or the disk's habits explain
	// when the other voters' answers last showed that this disk is as fast as theirs; 0 if they never did, or have
	// shown the opposite since
	agreedAt  time.Duration
	agreedP90 time.Duration // p90 when that agreement began, divided by ownTimes if that is above 1
	minuteAt  time.Duration // when a minute was last added to the history
	checked   bool          // the history has been checked to be about the present disks
}

// climb records how long writes have taken about rung times the usual time or longer.
type climb struct {
	rung  int
	since time.Duration // when the climb began, moved forward by gaps without samples; 0 without a climb
	began time.Time
	gap   time.Duration // how long too few samples have been available

	habit     time.Duration // duration up to which the history explains a spell of this rung at this hour
	habitHour int           // hour of the day of habit, plus one; 0 if habit is not cached
}

// comparisonPace holds the durations that a comparison uses.
type comparisonPace struct {
	span       time.Duration // span of the recent writes
	asks       time.Duration // how long before a finding the host begins to ask, at most
	answers    time.Duration // how long the other voters may take to answer
	lingers    time.Duration // how long a host continues to ask after its last reason
	doubts     time.Duration // how long the fsync check must need a comparison before the host asks
	gap        time.Duration // how long a climb survives without samples
	well       time.Duration // how long writes must be fast before the finding ends
	afterwards time.Duration // how long a spell that has ended can still make the disk SLOW
	wide       time.Duration // how long the 90th percentile must exceed the other voters'
	youngHold  time.Duration // the shortest spell that counts while the history is young
	tails      time.Duration // span in which slow episodes are counted
	tailsWell  time.Duration // how long there must be no slow write before a finding about slow episodes ends
	episode    time.Duration // slow writes that are closer together count as one episode
	scale      float64       // 1 for a window of 300 samples or more, otherwise window/300
}

const (
	// writesMaterial is the smallest excess over the usual time that matters, whatever the multiple.
	writesMaterial = 750 * time.Microsecond
	// writesKept bounds the recent samples, and writesNeeded is how many a median needs.
	writesKept, writesNeeded = 512, 10
	// climbBegins is the fraction of a rung at which a climb begins, and climbStays the fraction of that below which
	// the climb ends. Both are below 1 because a median of forty samples varies. At the lowest rung, a climb begins at
	// the rung itself, because the daily load comes close to it.
	climbStays, climbBegins = 0.85, 0.85
	// leaveBy divides a rung: writes below the quotient are fast again.
	leaveBy = 1.5
	// habitTimes multiplies the longest spell at this hour in the last week: the history explains no spell that lasts
	// longer than the product.
	habitTimes = 1.5
	// There are too many slow episodes if there are at least tailsFewest, and at least tailsTimes as many as on the
	// other voters and as usual.
	tailsFewest, tailsTimes = 8, 4
	tailsKept               = 128
	// agreedLongest is how long the other voters' answers count while the disk stays about as fast as it was then.
	agreedLongest = 24 * time.Hour
	// agreedWithin is the multiple of agreedP90 from which a disk must be compared again.
	agreedWithin = 2
	// wideTimes is the multiple of the other voters' 90th percentile that counts even if the median is the same.
	wideTimes = 3
	// asksMost is how many times in a row a host may begin to ask, and asksEvery the time after which it may do so once
	// more.
	asksMost, asksEvery = 4, 20 * time.Minute
)

func newComparison(t Thresholds) *comparison {
	part := float64(min(t.Window, 300)) / 300
	scaled := func(d time.Duration) time.Duration { return time.Duration(float64(d) * part) }
	c := &comparison{limits: t, track: &track{}, disk: &track{}, pace: comparisonPace{
		span: max(scaled(40*time.Second), 20*t.DirectInterval), asks: scaled(8 * time.Second),
		answers: max(scaled(30*time.Second), 10*time.Second), lingers: scaled(3 * time.Minute),
		doubts: scaled(time.Minute), gap: scaled(5 * time.Minute),
		well: scaled(5 * time.Minute), afterwards: t.pace().sharp + fsyncRecovers, wide: scaled(2 * time.Minute),
		youngHold: scaled(10 * time.Minute),
		tails:     scaled(2 * time.Hour),
		tailsWell: scaled(30 * time.Minute), episode: scaled(10 * time.Second), scale: part,
	}}
	c.asked = rate.NewLimiter(rate.Every(scaled(asksEvery)), asksMost)
	for _, r := range Rungs() {
		c.climbs = append(c.climbs, climb{rung: r})
	}
	return c
}

// hold returns how long writes must stay at rung times the usual time before that counts as a finding.
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

// read does nothing, because the fsync check calls observe.
func (c *comparison) read(Input) {}

func (c *comparison) begin(now time.Duration) { c.now, c.minuteAt = now, now }

// observe processes new input. The fsync check calls it first, because that check depends on the comparison.
func (c *comparison) observe(in Input) {
	c.elapsed = in.Now - c.now
	c.now, c.wall, c.peers = in.Now, in.Wall, in.Peers
	c.young = in.Peers.young(peersOldest)
	c.counting = credible(c.young, c.usual)
	if c.disk.State == Qualifying {
		c.forget() // the bursts of a qualifying run are not comparable with writes at rest
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

// forget drops the recent samples and slow episodes.
func (c *comparison) forget() {
	c.recent, c.p50, c.p90 = nil, 0, 0
	c.episodes = nil
}

// take adds the uncontaminated samples, and updates the median, the 90th percentile and the slow episodes.
func (c *comparison) take(all []disk.Sample) {
	for _, s := range all {
		if s.Contaminated {
			continue
		}
		c.recent = append(c.recent, s)
		if s.Latency > c.limits.FsyncSlow {
			if !c.climbing() && (c.lastSlow == 0 || s.End-c.lastSlow >= c.pace.episode) {
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

// compare updates times and ownTimes.
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

// follow updates a climb. A climb that ends by itself is added to the history, in [Day.Spells] or [Day.Found], unless
// it ended only because the other voters became slow, too. While there are too few samples, as under CPU starvation, a
// climb neither continues nor ends, until pace.gap has passed.
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
		// An unproven climb ended only because the other voters became slow, too: the writes are still slow compared
		// with this disk's own past. That shows no habit of this disk.
		unproven := float64(c.p50) >= climbStays*begins*float64(c.usual)
		switch {
		case unproven:
		case !c.slowWritesFound() && lasted < r.needs(c):
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

// explained returns the duration up to which the history explains a spell at the hour in which the climb began. It
// caches the result, which changes only with that hour or the history.
func (r *climb) explained(c *comparison) time.Duration {
	began := c.wall
	if r.since != 0 {
		began = r.began
	}
	if hour := began.UTC().Hour() + 1; hour != r.habitHour {
		r.habit, r.habitHour = time.Duration(habitTimes*float64(c.history.Longest(began, r.rung))), hour
	}
	return r.habit
}

// learned drops the cached habits of all climbs, because the history has changed.
func (c *comparison) learned() {
	for i := range c.climbs {
		c.climbs[i].habitHour = 0
	}
}

// highest returns the climb of the highest rung that has lasted long enough for a finding, or will have after the lead
// time; nil if there is none.
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

// climbing reports whether there is a climb.
func (c *comparison) climbing() bool {
	return slices.ContainsFunc(c.climbs, func(r climb) bool { return r.since != 0 })
}

// asksBefore returns how long before a finding this host asks the other voters.
func (c *comparison) asksBefore(rung int) time.Duration {
	return min(c.pace.asks, 2*c.pace.hold(rung)/3)
}

// ask updates whether this host asks the other voters how long their writes take. Within a spell the host begins to ask
// once, and continues while its writes take longer than its own past explains.
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

// tailing reports whether there are too many slow episodes, compared with the usual number and with the given number of
// the other voters.
func (c *comparison) tailing(others int) bool {
	n := len(c.episodes)
	return n >= tailsFewest && n >= tailsTimes*others &&
		float64(n) >= tailsTimes*c.history.UsualTails(c.pace.tails) && c.usual > 0
}

// othersTails returns the lower median of the other voters' numbers of slow episodes.
func (c *comparison) othersTails() int {
	return lowerMedian(c.counting, func(p PeerWrites) int { return p.Tails })
}

// slowWritesFound reports whether the comparison has a finding, or the disk is SLOW, STALLED or FAILED. Meanwhile, the
// history records neither writes nor slow episodes, and no spell as a habit, because a fault must not become a habit.
func (c *comparison) slowWritesFound() bool {
	return c.track.State == Warm || c.disk.State == Slow || c.disk.State == Stalled || c.disk.State == Failed
}

// learn adds a minute to the history, after checking that the history is about the present disks.
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
	// Learn nothing shortly before a finding, because the current writes may cause it.
	if c.p50 > 0 && !c.slowWritesFound() && c.highest(c.asksBefore) == nil {
		c.history.Add(c.wall, c.p50, c.p90)
	}
	c.remember()
}

// remember updates how long the writes usually take.
func (c *comparison) remember() {
	c.usual, _ = c.history.Median()
	c.usual90, _ = c.history.P90()
}

// identify discards the history if the disks have been replaced.
func (c *comparison) identify(devices DevicesReading) {
	if len(devices.Chain) == 0 {
		return
	}
	c.checked = true
	c.history = c.history.Of(devices.Identities())
	c.remember()
}

func (c *comparison) learnTail() {
	if !c.slowWritesFound() && !c.tailing(0) {
		c.history.AddTail(c.wall)
	}
}

func (c *comparison) report(v *Assessment) {
	v.Writes.P50, v.Writes.P90, v.Writes.Tails = c.p50, c.p90, len(c.episodes)
	v.Writes.LeastP90 = min(v.Writes.LeastP90, c.p90)
	v.AsUsual = c.asUsual(v.Writes.LeastP90)
	if c.tailed || c.tailing(c.othersTails()) {
		v.Writes.LeastTails = len(c.episodes)
	}
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
	return f.Code == DriveFailing || f.Code == CapacitorFailed || f.Code == DriveErrorsGrown || f.Code == DeviceErrors
}

// History returns what the judge has learned about the disk; the caller stores it.
func (j *Judge) History() ([]byte, error) { return j.compared.history.Encode() }

// UseHistory sets what the judge has learned about the disk.
func (j *Judge) UseHistory(h History) {
	j.compared.history, j.compared.checked = h, false
	j.compared.learned()
	j.compared.remember()
}
