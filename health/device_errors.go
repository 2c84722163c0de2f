// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package health

import (
	"fmt"
	"time"
)

// DeviceErrors is the code of the check of what the kernel counts against the drives.
const DeviceErrors Code = "DEVICE_ERRORS"

const deviceErrorsSpan = 24 * time.Hour

// declareDeviceErrors declares the check of commands that a drive did not answer in time, and of reads that a RAID
// array had to take from another leg. What SCSI counts as an error is none of them: it is also any command that the
// drive does not know, such as half of what smartctl asks.
func declareDeviceErrors() declaration {
	limit := Limit{Of: "errors of the drives", Unit: "a day"}
	return declaration{
		Check: Check{
			Name: "device-errors", Component: Disk, Gates: Nothing,
			Source: "iotmo_cnt of SCSI and SATA drives under etcd's data, errors of the legs of its arrays (md)",
			Limits: []Limit{limit},
			Problems: []Problem{
				{
					DeviceErrors, Disk, Warm, "A drive under etcd's data did not answer, or could not be read.",
					"The kernel gave up on a command, or a RAID array took what it could not read from another leg. " +
						"Drives that begin so often fail soon.",
					"'quorumctl health' shows which drive; look at 'journalctl -k' and 'smartctl -x' of it, at its " +
						"cable and its power, and have it replaced if it goes on",
				},
			},
			Runbook: findingRunbook,
		},
		start: OK,
		gather: func(at *track) evidence {
			return &counted{
				code: DeviceErrors, limit: limit, span: deviceErrorsSpan, track: at,
				of: func(in Input) Figure { return in.Devices.errors() },
				words: func(n float64, _ Limit) string {
					return fmt.Sprintf("%.0f timeouts and read errors of the drives in the last day, limit 0", n)
				},
			}
		},
	}
}

// errors adds up what the devices tell of their errors.
func (d DevicesReading) errors() Figure {
	if why := d.absent(); why != "" {
		return Figure{Absent: why}
	}
	sum := Figure{Absent: "the kernel counts no errors of drives of this kind"}
	for _, device := range d.Chain {
		if device.Errors.Known {
			sum = Figure{Value: sum.Value + device.Errors.Value, Known: true}
		}
	}
	return sum
}
