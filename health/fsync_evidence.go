// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package health

import (
	"slices"
	"time"

	"github.com/quorumd/quorumd/disk"
)

// fsync is the evidence on how long the disk takes to make a write durable. The check is declared in
// fsync_declaration.go. Its rules are in fsync.go, their conditions in fsync_conditions.go, the texts in fsync_text.go,
// and the state that survives a restart in fsync_memory.go.
type fsync struct {
	plain

	limits   Thresholds
	pace     pace
	track    *track
	compared *comparison

	// The newest reading.
	now    time.Duration
	member bool
	reset  bool
	disk   DiskReading
	etcd   EtcdProcess

	recent   samples    // uncontaminated samples of both lanes, for the rules
	lanes    [2]samples // the newest uncontaminated samples of each lane
	sorted   [2]spread  // sorted latencies of lanes
	run      samples    // uncontaminated samples of the qualifying run
	runs     spread     // sorted latencies of run
	leftOut  int        // number of contaminated samples of the run
	score    score
	outliers samples

	// Times.
	lastSample time.Duration // when the newest sample was completed
	lastJudged time.Duration // when the newest sample that is not contaminated was completed
	due        time.Duration // end of the probe's current rest, until which no sample is overdue
	dirty      time.Duration // when a slow or hanging write, or missing data, last restarted the clean time
	// start of the window of samples that first showed the disk to be steady; 0 if it is not steady
	calmSince time.Duration
	slowAt    time.Duration // when the writes of the last minute, or one in flight, last showed a SLOW disk
	slowSince time.Duration // when the current slow period began; a SLOW state can have several periods
	slowBegan time.Time     // slowSince by the wall clock
	healed    bool          // the slow period has ended, although the state is still SLOW
	resetAt   time.Duration // when the disk last left FAILED; 0 if never
	brokenAt  time.Duration // when an operation last hung or returned an error that means a broken disk

	allSigns []sign // cached, because formatting their texts is expensive

	hung time.Duration // age of the last hanging operation when it was last observed

	clean     int  // number of uncontaminated samples since dirty
	qualified bool // the disk has passed a qualifying run, and has been OK or WARM ever since
	wasWarm   bool // the disk was WARM before its samples stopped
}

// fsyncRecovers is how long the last minute's writes of a SLOW disk must not meet the conditions of SLOW before its
// slow period counts as over. It can be short, because it adds to that minute.
const fsyncRecovers = 30 * time.Second

// warmRecovers is how long a WARM disk must have no new sign of slow writes before [Assessment.Recovers] is set. It is
// longer than fsyncRecovers, because each change of Recovers is a write to etcd.
const warmRecovers = 5 * time.Minute

// urgentTimes is the multiple of the usual write time above which slow writes are urgent, because clients notice the
// difference at once.
const urgentTimes = 2

// samplesKept bounds the samples kept for the rules, in case the window is small and the probe is fast.
const samplesKept = 1 << 16

// begin marks the start of measuring: the first sample is not overdue yet.
func (f *fsync) begin(now time.Duration) {
	f.lastSample, f.lastJudged, f.score.began = now, now, now
}

func (f *fsync) read(in Input) {
	f.compared.observe(in)
	f.now, f.member, f.reset, f.disk, f.etcd = in.Now, in.Member, in.reset, in.Disk, in.Etcd.Process
	f.restartRun()
	for _, s := range in.Disk.Samples {
		f.take(s)
	}
	// The probe also rests after an error, but then a missing sample must not be excused.
	failed := in.Disk.Err != nil && in.Disk.Err.At >= f.lastSample
	if in.Disk.Alive && in.Disk.NextIn > 0 && !failed {
		f.due = f.now + in.Disk.NextIn
	}
	if f.disk.InFlight > f.limits.Stall {
		f.hung = f.disk.InFlight
	}
	f.score.advance(f.now, f.pace.round, f.pace.decay)
	f.trim()
	if f.track.State == Slow {
		f.followSlow()
	}
	if f.silent() || f.unjudged() || f.disk.InFlight >= f.limits.FsyncSlow {
		f.restartCleanTime(f.now)
	}
	if !f.steady() {
		f.calmSince = 0
	} else if f.calmSince == 0 {
		f.calmSince = f.recent.last(f.limits.Window)[0].End
	}
}

// followSlow tracks the slow periods of a SLOW disk, and adds each one that has ended by itself to the history.
func (f *fsync) followSlow() {
	_, slow := f.slowNow()
	switch {
	case slow || f.disk.InFlight >= f.limits.outlier():
		if f.healed {
			f.slowSince, f.slowBegan, f.healed = f.now, f.compared.wall, false
		}
		f.slowAt = f.now
	case !f.healed && f.now-f.slowAt >= fsyncRecovers:
		f.healed = true
		f.compared.history.AddSlow(f.slowBegan, f.slowAt-f.slowSince)
	}
}

// restartRun discards the progress of a FAILED disk's run after every error that means a broken disk, and while an
// operation hangs.
func (f *fsync) restartRun() {
	at := f.brokenAt
	if e := f.disk.Err; e != nil && e.broken() {
		at = max(at, e.At)
	}
	if f.disk.InFlight > f.limits.Stall {
		at = f.now
	}
	if at > f.brokenAt && f.track.State == Failed {
		f.run, f.runs, f.leftOut = nil, nil, 0
	}
	f.brokenAt = at
}

func (f *fsync) take(s disk.Sample) {
	f.lastSample = max(f.lastSample, s.End)
	// On a member's disk, the probe writes no bursts, so writes of both lanes count.
	repairing := f.track.State == Failed && s.End > f.brokenAt && (f.member || s.Lane == disk.LaneWAL)
	qualifying := f.track.State == Qualifying && s.Lane == disk.LaneWAL || repairing
	if s.Contaminated {
		if qualifying {
			f.leftOut++
		}
		return
	}
	f.lastJudged = max(f.lastJudged, s.End)
	f.recent = append(f.recent, s)
	f.lanes[s.Lane] = append(f.lanes[s.Lane], s)
	f.sorted[s.Lane] = f.sorted[s.Lane].insert(s.Latency)
	if qualifying {
		f.run = append(f.run, s)
	}
	f.clean++
	f.score.add(s.Latency > f.limits.FsyncSlow)
	if s.Latency >= f.limits.FsyncSlow {
		f.restartCleanTime(s.End)
	}
	if s.Latency > f.limits.outlier() {
		f.outliers = append(f.outliers, s)
	}
}

// restartCleanTime restarts the time without slow writes that a SLOW disk needs to recover.
func (f *fsync) restartCleanTime(at time.Duration) {
	f.dirty, f.clean = max(f.dirty, at), 0
}

// trim drops samples that no rule needs any more.
func (f *fsync) trim() {
	sharp := len(f.recent.since(f.now - f.pace.sharp))
	f.recent = f.recent.keep(max(3*f.limits.Window, min(sharp, samplesKept)))
	f.run = f.run.keep(f.limits.QualifySamples)
	f.runs = f.run.spread()
	for i, lane := range f.lanes {
		for _, old := range lane[:max(0, len(lane)-f.limits.Window)] {
			f.sorted[i] = f.sorted[i].remove(old.Latency)
		}
		f.lanes[i] = f.lanes[i].keep(f.limits.Window)
	}
	f.outliers = slices.DeleteFunc(f.outliers, func(s disk.Sample) bool { return f.now-s.End > f.pace.outliers })
}

// entered updates the evidence after a transition.
func (f *fsync) entered(from State) {
	to := f.track.State
	f.qualified = (to == OK || to == Warm) && (f.qualified ||
		(from == Qualifying || from == Failed && !f.member) && to == OK && f.fits())
	f.wasWarm = to == Unknown && (from == Warm || from == Unknown && f.wasWarm)
	if to == Slow && from != Slow {
		f.slowAt, f.slowSince, f.slowBegan, f.healed = f.now, f.now, f.compared.wall, false
	}
	if to != from {
		f.run, f.runs, f.leftOut = nil, nil, 0
	}
	if to == Qualifying && from != Qualifying || f.track.Code == DiskProbeDown {
		f.recent = nil // samples from before a run, or from before a gap in the data, do not count
	}
	if from == Failed {
		f.reset, f.resetAt, f.score.value, f.outliers = false, f.now, scoreLeast, nil
	}
}
