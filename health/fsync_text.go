// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package health

import (
	"fmt"
	"strings"
	"time"

	"github.com/quorumd/quorumd/disk"
)

// text describes the current state, with its measured number.
func (f *fsync) text() string {
	switch f.track.Code {
	case DiskGathering:
		return f.gathered()
	case DiskProbeDown:
		return f.noData()
	case DiskQualifying:
		return f.progress()
	case DiskUnfit:
		return f.unfit()
	case DiskFsyncWarm:
		return f.track.Reason + "; " + f.warmOutlook()
	case DiskFsyncSlow:
		return f.track.Reason + "; " + f.slowOutlook() + f.aged()
	case DiskStalled:
		if f.disk.InFlight > f.limits.Stall {
			return f.inFlight(f.limits.Stall)
		}
		return f.track.Reason + f.aged()
	case DiskFailed:
		return f.track.Reason + f.failedOutlook() + f.aged()
	default:
		return f.recentSummary()
	}
}

// aged returns a suffix with the age of the newest sample if the state has outlived its data, otherwise "".
func (f *fsync) aged() string {
	if !f.silent() {
		return ""
	}
	return fmt.Sprintf("; no sample for %s, so this may be stale", show(f.now-f.lastSample))
}

func (f *fsync) gathered() string {
	return fmt.Sprintf("%d of %d samples gathered", min(len(f.recent), f.limits.Window), f.limits.Window)
}

func (f *fsync) noData() string {
	if !f.silent() && f.unjudged() {
		return fmt.Sprintf("no sample for %s that was not contaminated by CPU starvation",
			show(f.now-f.lastJudged))
	}
	parts := []string{fmt.Sprintf("no sample for %s; one is due every %s", show(f.now-f.lastSample),
		show(f.limits.DirectInterval))}
	if !f.disk.Alive {
		parts = append(parts, "the probe is not running")
	}
	if e := f.disk.Err; e != nil && e.At >= f.lastSample {
		parts = append(parts, e.String())
	}
	return strings.Join(parts, "; ")
}

func (f *fsync) progress() string {
	if f.member {
		return f.gathered()
	}
	so := fmt.Sprintf("%d of %d WAL-like writes measured", len(f.run), f.limits.QualifySamples)
	if len(f.run) > 0 {
		so += fmt.Sprintf(", fsync p99 %s so far, limit %s", show(f.runs.at(990)), show(f.limits.FsyncWarm))
	}
	if f.leftOut > 0 {
		so += fmt.Sprintf("; %d discarded because of CPU starvation", f.leftOut)
	}
	return so
}

// misfits lists the limits that a qualifying run exceeded.
func (f *fsync) misfits() []string {
	all := f.runs
	var wrong []string
	for _, m := range []struct {
		name  string
		value time.Duration
		limit time.Duration
		keeps bool
	}{
		{"p99", all.at(990), f.limits.FsyncWarm, all.at(990) < f.limits.FsyncWarm},
		{"p99.9", all.at(999), f.limits.tail(), all.at(999) < f.limits.tail()},
		{"maximum", all.at(1000), f.limits.outlier(), all.at(1000) <= f.limits.outlier()},
	} {
		if !m.keeps {
			wrong = append(wrong, fmt.Sprintf("fsync %s %s over %d WAL-like writes, limit %s", m.name, show(m.value),
				len(all), show(m.limit)))
		}
	}
	return wrong
}

func (f *fsync) unfit() string {
	wrong := f.misfits()
	if len(wrong) == 0 {
		latest, _ := f.tripped()
		return latest
	}
	return strings.Join(wrong, "; ")
}

func (f *fsync) runSummary() string {
	return fmt.Sprintf("fsync p99 %s over %d WAL-like writes, limit %s", show(f.runs.at(990)), len(f.run),
		show(f.limits.FsyncWarm))
}

// recentSummary returns the p99 of the WAL lane, or of the direct lane while the WAL lane has no samples.
func (f *fsync) recentSummary() string {
	window := f.sorted[disk.LaneWAL]
	if len(window) == 0 {
		window = f.recent.last(f.limits.Window).spread()
	}
	if len(window) == 0 {
		return "no sample since the agent started"
	}
	text := fmt.Sprintf("fsync p99 %s over the last %s, limit %s", show(window.at(990)),
		plural(len(window), "write"), show(f.limits.FsyncWarm))
	if f.track.State == OK && window.at(990) > f.limits.FsyncWarm {
		text += "; " + f.tolerated()
	}
	return text
}

// tolerated explains why a p99 over the limit is not a finding.
func (f *fsync) tolerated() string {
	recent := f.recent.last(f.limits.Window)
	over, most := recent.over(f.limits.FsyncWarm), trip(f.limits.Window)-1
	if over > most {
		return "the other voters are as slow, this disk has been as slow before, or the comparison has no result yet"
	}
	if over == 0 {
		return fmt.Sprintf("all of the newest %s, WAL-like and direct together, are within it",
			plural(len(recent), "write"))
	}
	return fmt.Sprintf("of the newest %s, WAL-like and direct together, %d exceed the limit, and up to %d can be "+
		"chance", plural(len(recent), "write"), over, most)
}

// failedOutlook describes the progress of a FAILED disk towards OK.
func (f *fsync) failedOutlook() string {
	if len(f.run) == 0 {
		return ""
	}
	so := fmt.Sprintf("; %d of %d writes without an error so far", len(f.run), f.limits.QualifySamples)
	if wrong := f.misfits(); len(f.run) >= f.limits.QualifySamples && len(wrong) > 0 {
		so += ", " + strings.Join(wrong, ", ")
	}
	if !f.etcd.startedSince(max(f.brokenAt, f.track.Since)) {
		so += "; etcd has not been restarted since the error"
	}
	return so
}

// warmOutlook describes the progress of a WARM disk towards OK.
func (f *fsync) warmOutlook() string {
	if f.calmSince > 0 {
		return fmt.Sprintf("calm for %s, OK after %s", show(f.calmFor()),
			show(f.track.patience(OK, f.pace.settle, f.now)))
	}
	window := f.recent.last(f.limits.Window)
	so := fmt.Sprintf("OK again when at most %d of %d writes take longer than %s (now %d of %d)",
		allowed(f.limits.Window), f.limits.Window,
		show(f.limits.FsyncClear), window.over(f.limits.FsyncClear), len(window))
	if n := len(f.outliers); n > outliersMost {
		so += fmt.Sprintf(", and at most %d longer than %s within %s (now %d)", outliersMost, show(f.limits.outlier()),
			show(f.pace.outliers), n)
	}
	return so
}

// slowOutlook describes the progress of a SLOW disk towards WARM.
func (f *fsync) slowOutlook() string {
	return fmt.Sprintf("WARM again when no write takes %s or more for %s (so far for %s)", show(f.limits.FsyncSlow),
		show(f.track.patience(Warm, f.pace.clean, f.now)), show(f.now-f.dirty))
}
