// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package health

import (
	"fmt"
	"time"

	"github.com/quorumd/quorumd/disk"
)

// The methods of this file that return a text and a bool are conditions of rules. The text is the measurement with its
// limit.

func (f *fsync) broken() (string, bool) {
	e := f.disk.Err
	if e == nil || !e.broken() || f.resetAt > 0 && e.At <= f.resetAt {
		return "", false
	}
	return e.String(), true
}

// hanging reports whether the operation in flight is older than the limit and no write of another program, such as
// etcd, shows that the disk still works.
func (f *fsync) hanging(limit time.Duration) bool {
	return f.disk.InFlight > limit && !f.vouched()
}

func (f *fsync) vouched() bool {
	return f.disk.LastCompletion > 0 && f.now-f.disk.LastCompletion < f.limits.Stall
}

func (f *fsync) inFlight(limit time.Duration) string {
	return fmt.Sprintf("%s in flight for %s, limit %s", f.operation(), show(f.disk.InFlight), show(limit))
}

func (f *fsync) operation() string {
	if f.disk.InFlightOp == "" {
		return "an operation"
	}
	return f.disk.InFlightOp
}

func (f *fsync) hangs() (string, bool) {
	return f.inFlight(f.limits.Stall), f.hanging(f.limits.Stall)
}

func (f *fsync) hangsForGood() (string, bool) {
	return f.inFlight(f.limits.Fail), f.hanging(f.limits.Fail)
}

func (f *fsync) returned() (string, bool) {
	e := f.disk.Err
	back := f.lastSample > f.track.Since || e != nil && !e.refused() && e.At > f.track.Since
	return fmt.Sprintf("an operation hung for %s or longer and returned, limit %s", show(max(f.hung, f.limits.Stall)),
			show(f.limits.Stall)),
		back && f.disk.InFlight <= f.limits.Stall
}

func (f *fsync) vouchedFor() (string, bool) {
	return f.inFlight(f.limits.Stall) + ", while another write to the disk became durable",
		f.disk.InFlight > f.limits.Stall && f.vouched()
}

func (f *fsync) repaired() (string, bool) { return "reset by an operator", f.reset }

// silent reports whether a sample is overdue although the probe neither rests nor waits for the disk.
func (f *fsync) silent() bool {
	return f.disk.InFlight == 0 && f.now-max(f.lastSample, f.due) > f.pace.silent
}

// unjudged reports whether there has been no uncontaminated sample for too long.
func (f *fsync) unjudged() bool { return f.now-f.lastJudged > f.pace.unjudged }

func (f *fsync) missing() (string, bool) { return f.noData(), f.silent() }

func (f *fsync) blinded() (string, bool) { return f.noData(), f.unjudged() }

// flows reports whether there are recent uncontaminated samples.
func (f *fsync) flows() bool { return len(f.recent) > 0 && !f.silent() && !f.unjudged() }

func (f *fsync) gathering() (string, bool) { return f.gathered(), f.member && f.flows() }

func (f *fsync) unproven() (string, bool) {
	return fmt.Sprintf("the host has no member: %d WAL-like writes must pass first",
			f.limits.QualifySamples),
		!f.member && !f.qualified && f.flows()
}

// fits reports whether a complete run has been measured and is within the limits.
func (f *fsync) fits() bool {
	return len(f.run) >= f.limits.QualifySamples && len(f.misfits()) == 0
}

func (f *fsync) passes() (string, bool) {
	_, tripped := f.tripped()
	if tripped || !f.fits() {
		return "", false
	}
	return f.runSummary(), true
}

// proven reports whether a FAILED disk has passed a complete run without an error. If etcd runs, it must have been
// started after the error, because an older process may have data in memory that the disk has lost.
func (f *fsync) proven() (string, bool) {
	if !f.fits() || f.disk.InFlight > f.limits.Stall || !f.etcd.startedSince(max(f.brokenAt, f.track.Since)) {
		return "", false
	}
	return f.runSummary(), true
}

func (f *fsync) fails() (string, bool) {
	if _, passes := f.passes(); passes || len(f.run) < f.limits.QualifySamples {
		return "", false
	}
	return f.unfit(), true
}

// ofMember returns a condition: the sign holds, the host has a member, and there are recent uncontaminated samples.
func (f *fsync) ofMember(s sign) func() (string, bool) {
	return func() (string, bool) {
		measured, holds := s.holds()
		return measured, f.member && f.flows() && holds
	}
}

func (f *fsync) memberStillWarm() (string, bool) {
	return "it was WARM before its samples stopped", f.member && f.flows() && f.wasWarm &&
		len(f.recent) >= f.limits.Window
}

func (f *fsync) memberFine() (string, bool) {
	_, tripped := f.tripped()
	return f.recentSummary(), f.member && f.flows() && !tripped && len(f.recent) >= f.limits.Window
}

func (f *fsync) slowAllTheTime() (string, bool) {
	return fmt.Sprintf("%d of %d writes of the last measurement took longer than %s; slow score %.0f, limit %.0f",
			f.score.lastSlow, f.score.lastCount, show(f.limits.FsyncSlow), f.score.value, scoreMost),
		f.score.value >= scoreMost
}

func (f *fsync) slowNow() (string, bool) {
	window := f.recent.since(f.now - f.pace.sharp)
	if over := window.over(f.limits.FsyncSlow); over == 0 || over < trip(len(window)) {
		return "", false
	}
	return fmt.Sprintf("fsync p99 %s over the last %s (%s), limit %s",
		show(window.spread().at(990)), show(f.pace.sharp), plural(len(window), "write"), show(f.limits.FsyncSlow)), true
}

// recovered requires samples as well as time, because missing data is no recovery.
func (f *fsync) recovered() (string, bool) {
	need := f.track.patience(Warm, f.pace.clean, f.now)
	return fmt.Sprintf("for %s, no write took %s or longer", show(need), show(f.limits.FsyncSlow)),
		f.score.value <= scoreLeast && f.clean >= f.limits.Window && f.now-f.dirty >= need
}

// steady reports whether a WARM disk currently meets the limits for OK.
func (f *fsync) steady() bool {
	clear := len(f.recent) >= f.limits.Window &&
		(f.recent.last(f.limits.Window).over(f.limits.FsyncClear) <= allowed(f.limits.Window) || f.compared.agreed())
	if !clear {
		return false
	}
	direct := f.lanes[disk.LaneDirect].since(f.now - f.pace.calm)
	_, tripped := f.tripped()
	return len(direct) > 0 && direct.max() < f.limits.calm() && !tripped
}

// calmAgain reports whether the disk has been steady for long enough. That time starts with the window of samples that
// first showed a steady disk, but not before the disk became WARM.
func (f *fsync) calmAgain() (string, bool) {
	need := f.track.patience(OK, f.pace.settle, f.now)
	return fmt.Sprintf("for %s, not more than %d of %d writes took longer than %s", show(need),
			allowed(f.limits.Window), f.limits.Window, show(f.limits.FsyncClear)),
		f.calmSince > 0 && f.calmFor() >= need
}

func (f *fsync) calmFor() time.Duration { return f.now - max(f.calmSince, f.track.Since) }
