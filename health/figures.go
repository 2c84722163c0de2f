// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package health

import (
	"time"

	"github.com/quorumd/quorumd/disk"
)

// Figures are measurements for display. No decision depends on them.
type Figures struct {
	WAL, Direct LaneFigures
	// Limit is the limit of the p99 of WAL-like writes.
	Limit time.Duration
	// Age is the age of the newest sample, or the time since the first input if there is none yet.
	Age time.Duration
	// InFlight is the age of the operation in flight, 0 if there is none, and InFlightOp its name.
	InFlight   time.Duration
	InFlightOp string
	// Score is the slow score, from 1 to 100.
	Score float64
	// Contaminated is the percentage of the last minute's samples that are no evidence about the disk because of CPU
	// starvation.
	Contaminated float64
	// Samples is the number of samples of the last minute, and LeftOut how many of them are contaminated. The figures
	// of the lanes ignore the contaminated ones.
	LeftOut, Samples int
	// QualifyDone and QualifyNeed are the progress of the qualifying run in writes; both 0 if no run is in progress.
	QualifyDone, QualifyNeed int
	// GatherDone is the number of samples gathered so far to judge the disk, and GatherNeed the number needed; both are
	// 0 unless samples are being gathered.
	GatherDone, GatherNeed int
	// Devices are the block devices below etcd's data.
	Devices DevicesReading
	// Requests is how the local member answers requests of the agent.
	Requests RequestsReading
	// Certificates are the certificates that were last read; do not modify them.
	Certificates []Certificate
}

// LaneFigures cover the newest uncontaminated samples of a lane, at most [Thresholds.Window]. During a qualifying run,
// the figures of the WAL lane cover the run. If Count is 0, nothing was measured, and the other fields are meaningless.
type LaneFigures struct {
	Count         int
	P50, P99, Max time.Duration
	// Over is how many samples took longer than [Thresholds.FsyncWarm].
	Over int
	// Age is the age of the newest sample, and Span the time between the oldest and the newest.
	Age, Span time.Duration
}

func (f *fsync) report(v *Assessment) {
	v.Qualified = f.qualified
	v.Writes = f.writes()
	v.Recovers = f.track.Code == DiskFsyncSlow && f.now-f.slowAt >= fsyncRecovers
	newest := f.recent.since(f.now - max(f.pace.newest, writesFewest*f.limits.DirectInterval))
	noticed := max(f.limits.FsyncWarm, urgentTimes*f.compared.usual)
	v.Urgent = len(newest) > 0 && 2*newest.over(noticed) >= len(newest)
	if f.track.State == Warm || f.track.State == Slow {
		_, trips := f.tripped()
		v.SlowNow = trips || f.track.State == Slow && !v.Recovers
		v.Habitual = f.compared.usualSpell() && f.compared.p90 < min(f.limits.outlier(), habitualMost) &&
			float64(f.compared.p50) < leaveBy*float64(highestRung*f.compared.usual)
	}
	to := &v.Figures
	to.WAL, to.Direct = f.laneFigures(f.lanes[disk.LaneWAL], f.sorted[disk.LaneWAL]),
		f.laneFigures(f.lanes[disk.LaneDirect], f.sorted[disk.LaneDirect])
	to.Limit, to.Age, to.Score = f.limits.FsyncWarm, f.now-f.lastSample, f.score.value
	to.InFlight, to.InFlightOp = f.disk.InFlight, f.disk.InFlightOp
	if !f.member && (f.track.State == Qualifying || f.track.State == Failed && len(f.run) > 0) {
		to.WAL = f.laneFigures(f.run, f.runs)
		to.QualifyDone, to.QualifyNeed = len(f.run), f.limits.QualifySamples
	}
	if f.track.Code == DiskGathering {
		to.GatherDone, to.GatherNeed = min(len(f.recent), f.limits.Window), f.limits.Window
	}
}

func (f *fsync) laneFigures(lane samples, all spread) LaneFigures {
	if len(lane) == 0 {
		return LaneFigures{}
	}
	oldest, newest := lane[0].End, lane[len(lane)-1].End
	return LaneFigures{
		Count: len(lane), P50: all.at(500), P99: all.at(990), Max: all.at(1000), Over: lane.over(f.limits.FsyncWarm),
		Age: f.now - newest, Span: newest - oldest,
	}
}
