// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package health

import (
	"fmt"
	"slices"
)

// transitions returns the rules of the disk's states, which get worse fast and better slowly. [Thresholds] names the
// sources of the numbers, except three: trip comes from the binomial distribution, the slow score from TiKV, and the
// limit of direct writes for OK from Pebble.
func (f *fsync) transitions() []rule {
	alive := []State{Unknown, Qualifying, OK, Warm, Slow, Stalled}
	answering := []State{Unknown, Qualifying, OK, Warm, Slow}
	ageing := []State{Unknown, Qualifying, OK, Warm}
	open := []State{Unknown, Qualifying}
	t, p := f.limits, f.pace
	return slices.Concat([]rule{
		{alive, Failed, DiskFailed, "an operation returns an error that means a failed disk", f.broken, false},
		{
			[]State{Stalled},
			Failed, DiskFailed, "a write has been in flight for more than " + show(t.Fail),
			f.hangsForGood, false,
		},
		{
			answering, Stalled, DiskStalled,
			fmt.Sprintf("an operation has been in flight for more than %s, and no other write to the disk became "+
				"durable in the last %s", show(t.Stall), show(t.Stall)), f.hangs, false,
		},
		{[]State{Stalled}, Slow, DiskFsyncSlow, "the operation returned", f.returned, false},
		{
			[]State{Stalled},
			Slow, DiskFsyncSlow, "another write to the disk became durable in the last " + show(t.Stall),
			f.vouchedFor, false,
		},
		{[]State{Failed}, Qualifying, DiskQualifying, "an operator resets the health state", f.repaired, false},
		{
			[]State{Failed},
			OK,
			"",
			fmt.Sprintf(
				"%d writes (WAL-like ones only, if the host has no member) had no error and were within the limits "+
					"of a qualifying run, and etcd was started after the last error or is not running",
				t.QualifySamples,
			),
			f.proven,
			false,
		},

		{
			ageing, Unknown, DiskProbeDown,
			"there has been no sample for " + show(p.silent) + ", and no write is in flight", f.missing, false,
		},
		{
			ageing, Unknown, DiskProbeDown,
			"there have been only contaminated samples for " + show(p.unjudged), f.blinded, false,
		},
		{[]State{Unknown}, Unknown, DiskGathering, "samples arrive, and the host has a member", f.gathering, false},
	}, f.qualifyingRules(), f.latencyRules(open))
}

// qualifyingRules returns the rules for the qualifying run of a host without a member.
func (f *fsync) qualifyingRules() []rule {
	t := f.limits
	within := fmt.Sprintf("p99 of %d WAL-like writes is below %s, p99.9 below %s, and none over %s",
		t.QualifySamples, show(t.FsyncWarm), show(t.tail()), show(t.outlier()))
	return []rule{
		{
			[]State{Unknown},
			Qualifying, DiskQualifying, "samples arrive, and the host has no member", f.unproven,
			false,
		},
		{
			[]State{OK, Warm},
			Qualifying, DiskQualifying, "the host no longer has a member, and its disk has not passed a qualifying run",
			f.unproven, false,
		},
		{[]State{Qualifying}, OK, "", within + ", and the latest samples show no sign of WARM", f.passes, false},
		{
			[]State{Qualifying},
			Qualifying, DiskUnfit,
			fmt.Sprintf("%d WAL-like writes were measured, and they exceed the limits or there is a sign of WARM",
				t.QualifySamples), f.fails, false,
		},
	}
}

// latencyRules returns the rules for a disk in use.
func (f *fsync) latencyRules(open []State) []rule {
	t, p, short := f.limits, f.pace, f.limits.Window
	var begin, later []rule
	for _, s := range f.signs() {
		begin = append(begin, rule{
			open, Warm, DiskFsyncWarm, "the host has a member, and " + s.when, f.ofMember(s), false,
		})
		later = append(later, rule{[]State{OK}, Warm, DiskFsyncWarm, s.when, s.holds, false})
	}
	return slices.Concat(begin, []rule{
		{
			[]State{Unknown},
			Warm, DiskFsyncWarm,
			fmt.Sprintf("the host has a member and %d samples, and was WARM before its samples stopped", short),
			f.memberStillWarm, false,
		},
		{
			open, OK, "", fmt.Sprintf("the host has a member and %d samples without a sign of WARM", short),
			f.memberFine, false,
		},
	}, later, []rule{
		{
			[]State{Warm},
			Slow, DiskFsyncSlow,
			fmt.Sprintf("the slow score reaches %.0f: after %s if %.0f %% or more of the samples are over %s, "+
				"or later if fewer are", scoreMost, show(7*p.round), 100*fullShare, show(t.FsyncSlow)),
			f.slowAllTheTime, false,
		},
		{[]State{Warm}, Slow, DiskFsyncSlow, fmt.Sprintf("p99 is significantly over %s within %s", show(t.FsyncSlow),
			show(p.sharp)), f.slowNow, false},
		{[]State{Warm}, Slow, DiskFsyncSlow, fmt.Sprintf("%d samples are over %s within %s, the last one while WARM",
			outliersMost+1, show(t.outlier()), show(p.outliers)), f.outlyingStill, false},
		{
			[]State{Slow},
			Warm, DiskFsyncWarm,
			fmt.Sprintf("for %s and in at least %d samples, no write took %s or more, and the slow score is down "+
				"to %.0f",
				show(p.clean), short, show(t.FsyncSlow), scoreLeast), f.recovered, true,
		},
		{
			[]State{Warm},
			OK, "",
			fmt.Sprintf("for %s, at most %d of the last %d samples have been over %s, all direct writes of the last "+
				"%s below %s, and there has been no sign of WARM",
				show(p.settle), allowed(short), short, show(t.FsyncClear), show(p.calm), show(t.calm())), f.calmAgain,
			true,
		},
	})
}
