// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package health

import (
	"fmt"
	"time"
)

// usageFresh is how long free space is believed. The probe asks every 30 s.
const usageFresh = 5 * time.Minute

// space is the evidence on the room left.
type space struct {
	minFree, enough uint64
	free            uint64
	fresh           bool
}

// spaceCheck judges the room left. It is left only when a tenth more than needed is free, so that it does not flap.
func spaceCheck(t Thresholds) *check {
	s := &space{minFree: t.MinFree, enough: t.MinFree + t.MinFree/10}
	unknown := func() (string, bool) { return s.text(), !s.fresh }
	low := func() (string, bool) { return s.text(), s.fresh && s.free < s.minFree }
	fine := func() (string, bool) { return s.text(), s.fresh && s.free >= s.minFree }
	fineAgain := func() (string, bool) { return s.text(), s.fresh && s.free >= s.enough }
	return &check{
		name: "space", component: Disk, start: Unknown, startCode: DiskSpaceUnknown,
		rules: []rule{
			{
				[]State{OK, Warm},
				Unknown, DiskSpaceUnknown,
				"free space was not asked, or not answered, for " + show(usageFresh), unknown, false,
			},
			{[]State{Unknown, OK}, Warm, DiskSpaceLow, "less than " + showBytes(s.minFree) + " free", low, false},
			{[]State{Unknown}, OK, "", showBytes(s.minFree) + " or more free", fine, false},
			{[]State{Warm}, OK, "", showBytes(s.enough) + " or more free", fineAgain, false},
		},
		read: s.read, text: s.text, track: &track{},
	}
}

func (s *space) read(in Input) {
	s.free = in.Disk.Free
	s.fresh = in.Disk.Total > 0 && in.Disk.UsageAge <= usageFresh
}

func (s *space) text() string {
	if !s.fresh {
		return "free space not known"
	}
	return fmt.Sprintf("%s free, limit %s", showBytes(s.free), showBytes(s.minFree))
}
