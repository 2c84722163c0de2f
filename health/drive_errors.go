// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package health

// DriveErrorsGrown is the code of the check of what drives count.
const DriveErrorsGrown Code = "DRIVE_ERRORS"

const driveErrorsSpan = 7 * day

// declareDriveErrors declares the check of errors that drives count. What they had counted when they were first looked
// at says nothing: many run for years with a few.
func declareDriveErrors() declaration {
	limit := Limit{Of: "errors that a drive counts", Unit: "a week"}
	return declaration{
		Check: Check{
			Name: "drive-errors", Component: Machine, Gates: Nothing, Behind: []string{"smart"},
			Source: smartSource,
			Limits: []Limit{limit},
			Problems: []Problem{
				{
					DriveErrorsGrown, Machine, Warm, "A drive counts errors of its medium.",
					"It has met blocks lately that it cannot read or write as it should. A drive on which such " +
						"errors appear fails more often than others, and what lay in them may be lost.",
					"look at 'smartctl -x /dev/NAME'; if they become more, have the drive replaced",
				},
			},
			Runbook: findingRunbook,
		},
		start: OK,
		gather: func(*track) evidence {
			return &counters{
				code: DriveErrorsGrown, span: driveErrorsSpan, kept: map[string]growth{},
				sick: "a counter of a drive has grown", well: "no counter of a drive has grown", over: "a week",
				missing: func(in Input) string { return in.Hardware.Drives.absent() },
				look:    func(in Input) []counter { return countedByDrives(in.Hardware.Drives.All) },
			}
		},
	}
}

// countedByDrives gives what drives that answer have counted.
func countedByDrives(drives []Drive) (all []counter) {
	for _, d := range drives {
		if d.Absent != "" {
			continue
		}
		for _, e := range d.Errors {
			all = append(all, counter{d.Name + "/" + d.Serial + "/" + e.Of, d.title(), e.Of, float64(e.N)})
		}
	}
	return all
}
