// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package health

// DriveErrorsGrown is the code of the check of the drives' own error counters.
const DriveErrorsGrown Code = "DRIVE_ERRORS"

const driveErrorsSpan = 7 * day

// checkDriveErrors is the check of errors that drives count. The counts at the first reading are ignored: many
// drives run for years with a few errors.
var checkDriveErrors = advice{
	name: "drive-errors", component: Machine, behind: []string{"smart"},
	source: smartSource,
	limit:  Limit{Of: "new errors of a drive", Unit: "a week"},
	code:   DriveErrorsGrown,
	title:  "A drive reports new media errors.",
	meaning: "It recently failed to read or write some blocks. Such drives fail more often than others, and " +
		"the data in those blocks may be lost.",
	remedy: "check 'smartctl -x /dev/NAME'; replace the drive if the count keeps growing",
	measure: errorCounts(counters{
		span:    driveErrorsSpan,
		over:    "a week",
		bad:     "a drive reports new errors",
		well:    "no drive reports new errors",
		missing: func(in Input) string { return in.Hardware.Drives.absent() },
		look:    func(in Input) []counter { return countedByDrives(in.Hardware.Drives.All) },
	}),
}

// countedByDrives returns the counters of the drives that report any.
func countedByDrives(drives []Drive) (all []counter) {
	for _, d := range drives {
		if d.Absent != "" {
			continue
		}
		for _, e := range d.Errors {
			all = append(all, counter{d.Name + "/" + d.Serial + "/" + e.Of, d.title(), e.Of, float64(e.N), 0})
		}
	}
	return all
}
