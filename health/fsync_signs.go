// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package health

import (
	"fmt"
	"time"

	"github.com/quorumd/quorumd/disk"
)

// sign is a condition that a healthy disk does not meet. One sign is enough for WARM, and a disk with a sign does not
// become OK.
type sign struct {
	when  string // the condition with its numbers, for display
	holds func() (string, bool)
}

// These numbers of consecutive writes over a limit show that a disk stays slow and was not slow just once. The internal
// cleanup of a disk takes two or three seconds, and no healthy disk was observed to exceed [Thresholds.FsyncSlow] three
// times in a row.
const (
	warmInARow = 6
	slowInARow = 3
	// outliersMost is how many outliers a disk may have without being WARM. Although the probe writes rarely, a disk
	// with one outlier in a hundred writes exceeds this number within minutes.
	outliersMost = 1
)

// signs returns the signs of WARM. The first one that holds provides the text.
func (f *fsync) signs() []sign {
	if f.allSigns == nil {
		f.allSigns = f.newSigns()
	}
	return f.allSigns
}

func (f *fsync) newSigns() []sign {
	t, p := f.limits, f.pace
	short, long := t.Window, 3*t.Window
	return []sign{
		{
			fmt.Sprintf("%d of the last %d samples, or %d of %d, are over %s, unless the other voters' writes take "+
				"as long",
				trip(short), short, trip(long), long, show(t.FsyncWarm)), f.alone(f.often),
		},
		{
			fmt.Sprintf("%[1]d WAL-like samples in a row, or %[1]d direct ones, are over %[2]s", slowInARow,
				show(t.FsyncSlow)),
			func() (string, bool) { return f.inARow(slowInARow, t.FsyncSlow, 0) },
		},
		{
			fmt.Sprintf("%[1]d WAL-like samples in a row, or %[1]d direct ones, are over %[2]s for %[3]s or more, "+
				"unless the other voters' writes take as long", warmInARow, show(t.FsyncWarm), show(p.streak)),
			f.alone(func() (string, bool) { return f.inARow(warmInARow, t.FsyncWarm, p.streak) }),
		},
		{
			fmt.Sprintf("%d samples are over %s within %s", outliersMost+1, show(t.outlier()), show(p.outliers)),
			f.outlying,
		},
	}
}

// tripped reports whether there is any sign of WARM.
func (f *fsync) tripped() (string, bool) {
	for _, s := range f.signs() {
		if measured, holds := s.holds(); holds {
			return measured, true
		}
	}
	return "", false
}

// often reports whether more samples are over the limit than chance explains. An incomplete window is enough if it
// already contains that many. Samples that a comparison or the disk's habits have explained do not count.
func (f *fsync) often() (string, bool) {
	unexplained := f.recent.since(f.compared.explained)
	for _, n := range []int{f.limits.Window, 3 * f.limits.Window} {
		window := unexplained.last(n)
		if over := window.over(f.limits.FsyncWarm); over > 0 && over >= trip(n) {
			return fmt.Sprintf("%d of the last %d writes took longer than %s, limit %d", over, len(window),
				show(f.limits.FsyncWarm), trip(n)-1), true
		}
	}
	return "", false
}

// alone returns a condition that holds if the sign does, except while the comparison with the other voters and with the
// past shows that this disk is not the cause, or has no result yet.
func (f *fsync) alone(sign func() (string, bool)) func() (string, bool) {
	return func() (string, bool) {
		measured, holds := sign()
		if !holds {
			return "", false
		}
		disagrees, pending := f.compared.disagrees()
		return measured, !disagrees && !pending
	}
}

// inARow reports whether at least the n newest samples of a lane were over the limit, for at least the given span.
func (f *fsync) inARow(n int, limit, span time.Duration) (string, bool) {
	for _, lane := range []disk.Lane{disk.LaneDirect, disk.LaneWAL} {
		streak := f.recent.streak(lane, limit)
		if len(streak) < n {
			continue
		}
		newest, oldest := streak[0], streak[len(streak)-1]
		if lasts := newest.End - oldest.End; lasts >= span {
			return fmt.Sprintf("%d writes in a row took longer than %s within %s, the slowest %s; limit %d",
				len(streak), show(limit), show(lasts), show(streak.max()), n-1), true
		}
	}
	return "", false
}

func (f *fsync) outlying() (string, bool) {
	return fmt.Sprintf("%d writes took longer than %s within %s, the slowest %s; limit %d", len(f.outliers),
			show(f.limits.outlier()), show(f.pace.outliers), show(f.outliers.max()), outliersMost),
		len(f.outliers) > outliersMost
}

// outlyingStill reports whether there are too many outliers, the newest of them after the disk became WARM.
func (f *fsync) outlyingStill() (string, bool) {
	measured, holds := f.outlying()
	return measured, holds && f.outliers[len(f.outliers)-1].End > f.track.Since
}
