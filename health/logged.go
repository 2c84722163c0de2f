// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package health

import (
	"slices"
	"time"
)

// KernelLogErrors is the code of the check of kernel log errors of the devices below etcd's data.
const KernelLogErrors Code = "KERNEL_LOG_ERRORS"

const loggedSpan = 24 * time.Hour

// LoggedErrors counts the errors in the kernel's log since the boot that are about one block device, or about its
// controller or port. The counts are lower bounds, because the kernel drops lines if there are many.
type LoggedErrors struct {
	Device     string `json:"device"`               // name in the log line, such as sda, nvme0, ata3 or dm-0
	Errors     uint64 `json:"errors,omitempty"`     // failed requests, and devices that an array has ejected
	Resets     uint64 `json:"resets,omitempty"`     // commands without an answer, and the resets that followed
	FileSystem uint64 `json:"fileSystem,omitempty"` // errors detected by a file system
}

// checkLogged is the check of errors in the kernel log. It only advises, because a log line is not a measurement, and
// the probe gets the same errors as etcd.
var checkLogged = advice{
	name: "kernel-log", component: Disk,
	source: "the kernel log, which quorumd-kernel-log.service scans every two minutes for errors " +
		"of the devices below etcd's data",
	limit: Limit{Of: "lines of one type about a device", Unit: "a day"},
	code:  KernelLogErrors,
	title: "The kernel logged new errors of a device under etcd's data.",
	meaning: "A request failed, a drive was reset, or a file system found corruption. A single occurrence " +
		"may be a loose cable, but drives that start like this often fail soon.",
	remedy: "find the device with 'quorumctl health'; check 'journalctl -k -g NAME' and 'smartctl -x' of " +
		"the drive; replace it if the errors continue",
	measure: errorCounts(counters{
		span: loggedSpan,
		over: "a day",
		bad:  "the kernel log has a new device error",
		well: "the kernel log has no new device error",
		missing: func(in Input) string {
			if why := in.Hardware.Logged.absent(); why != "" {
				return why
			}
			return in.missing(place.absent)
		},
		partly: func(in Input) []string { return in.partly(place.absent) },
		look: func(in Input) (all []counter) {
			for _, p := range in.places() {
				all = append(all, p.logged(in.Hardware.Logged.All)...)
			}
			return all
		},
	}),
}

// logged returns the counters of the chain's devices. A device without a line in the log has had no error.
func (d DevicesReading) logged(all []LoggedErrors) (counters []counter) {
	for _, device := range d.Chain {
		var sum LoggedErrors
		for _, e := range all {
			if e.Device == device.Name || slices.Contains(device.AttachedTo, e.Device) {
				sum.Errors += e.Errors
				sum.Resets += e.Resets
				sum.FileSystem += e.FileSystem
			}
		}
		key := device.Name + "/" + device.Serial + "/"
		counters = append(counters,
			counter{key + "errors", device.Name, "I/O errors in the kernel log", float64(sum.Errors), 0},
			counter{key + "resets", device.Name, "timeouts and resets in the kernel log", float64(sum.Resets), 0},
			counter{key + "files", device.Name, "file system errors in the kernel log", float64(sum.FileSystem), 0})
	}
	return counters
}
