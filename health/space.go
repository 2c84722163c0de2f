// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package health

import (
	"fmt"
	"time"
)

// usageFresh is how long a reading of free space is valid. The probe asks every 30 s.
const usageFresh = 5 * time.Minute

// The codes of the check of free space.
const (
	DiskSpaceLow     Code = "DISK_SPACE_LOW"
	DiskSpaceUnknown Code = "DISK_SPACE_UNKNOWN"
)

// declareSpace declares the check of free space. The finding ends only when a tenth more than the required space is
// free, so that it does not flap.
func declareSpace(t Thresholds) declaration {
	enough := t.MinFree + t.MinFree/10
	return declaration{
		Check: Check{
			Name: "space", Component: Disk, Gates: Everything, Vital: true,
			Source: "statfs of the file system that the probe writes to",
			Limits: []Limit{{
				Of: "free", Unit: "bytes", Enter: float64(t.MinFree), Leave: float64(enough), Below: true,
			}},
			Problems: spaceProblems(), Runbook: findingRunbook,
		},
		start: Unknown, startCode: DiskSpaceUnknown,
		gather: func(*track) evidence { return &space{minFree: t.MinFree, enough: enough} },
	}
}

func spaceProblems() []Problem {
	return []Problem{
		{
			DiskSpaceLow, Disk, Warm, "The disk is nearly full.",
			"Less space is free than a join needs. etcd stops when it runs out of space.",
			"free up space on the file system of etcd's data directory, or of etcd.walDir if that is a separate one, " +
				"or lower disk.minFree",
		},
		{
			DiskSpaceUnknown, Disk, Unknown, "Free disk space is unknown.",
			"The probe has not checked it yet, or the file system does not respond.",
			"if this persists, check 'journalctl -u quorumd' for messages of the probe",
		},
	}
}

// space is the evidence on free space.
type space struct {
	plain

	minFree, enough uint64
	disk            DiskReading
}

func (s *space) transitions() []rule {
	unknown := func() (string, bool) { return s.text(), !s.fresh() }
	low := func() (string, bool) { return s.text(), s.fresh() && s.disk.Free < s.minFree }
	fine := func() (string, bool) { return s.text(), s.fresh() && s.disk.Free >= s.minFree }
	fineAgain := func() (string, bool) { return s.text(), s.fresh() && s.disk.Free >= s.enough }
	return []rule{
		{
			[]State{OK, Warm},
			Unknown, DiskSpaceUnknown,
			"free space has not been measured for " + show(usageFresh), unknown, false,
		},
		{[]State{Unknown, OK}, Warm, DiskSpaceLow, "less than " + showBytes(s.minFree) + " free", low, false},
		{[]State{Unknown}, OK, "", showBytes(s.minFree) + " or more free", fine, false},
		{[]State{Warm}, OK, "", showBytes(s.enough) + " or more free", fineAgain, false},
	}
}

func (s *space) read(in Input) { s.disk = in.Disk }

func (s *space) fresh() bool { return s.disk.Total > 0 && s.disk.UsageAge <= usageFresh }

func (s *space) text() string {
	if !s.fresh() {
		return "free space unknown"
	}
	return fmt.Sprintf("%s free, limit %s", showBytes(s.disk.Free), showBytes(s.minFree))
}
