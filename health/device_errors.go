// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package health

import "time"

// DeviceErrors is the code of the check of the kernel's error counters for drives.
const DeviceErrors Code = "DEVICE_ERRORS"

const deviceErrorsSpan = 24 * time.Hour

// checkDeviceErrors is the check of commands that a drive did not answer in time, and of reads that a RAID array had to
// repeat on a different member device. SCSI's own error counter is not used, because it also counts every command that
// a drive does not support, such as half of those that smartctl sends.
var checkDeviceErrors = advice{
	name: "device-errors", component: Disk,
	source: "iotmo_cnt of SCSI and SATA drives under etcd's data, and errors of the member devices of md " +
		"arrays",
	limit: Limit{Of: "new errors of a device", Unit: "a day"},
	code:  DeviceErrors,
	title: "A drive under etcd's data timed out or returned read errors.",
	meaning: "The kernel gave up on a command, or a RAID array had to read the data from another member " +
		"device. Drives with such errors often fail soon.",
	remedy: "find the drive with 'quorumctl health'; check 'journalctl -k' and 'smartctl -x' for it, and " +
		"check its cable and power; replace it if the errors continue",
	measure: errorCounts(counters{
		span:    deviceErrorsSpan,
		over:    "a day",
		bad:     "a device reports new errors",
		well:    "no device reports new errors",
		missing: func(in Input) string { return in.missing(place.uncounted) },
		partly:  func(in Input) []string { return in.partly(place.uncounted) },
		look: func(in Input) (all []counter) {
			for _, p := range in.places() {
				all = append(all, p.counted()...)
			}
			return all
		},
	}),
}

// uncounted returns why no device of a place has error counters; empty if at least one device has them.
func (p place) uncounted() string {
	if why := p.absent(); why != "" || len(p.counted()) > 0 {
		return why
	}
	return "the kernel has no error counters for drives of this type"
}

// counted returns the error counters of the devices that have one.
func (d DevicesReading) counted() (all []counter) {
	for _, device := range d.Chain {
		if device.Errors.Known {
			all = append(all, counter{
				device.Name + "/" + device.Serial, device.Name, "timeouts and read errors", device.Errors.Value, 0,
			})
		}
	}
	return all
}
