// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package health

import (
	"slices"
	"time"
)

// KernelLogErrors is the code of the check of what the kernel's log holds against the devices below etcd's data.
const KernelLogErrors Code = "KERNEL_LOG_ERRORS"

const loggedSpan = 24 * time.Hour

// LoggedErrors are the lines of the kernel's log since the boot that hold something against a block device, or against
// what it hangs on. The kernel leaves lines out when there are many: there were at least so many errors.
type LoggedErrors struct {
	Device     string `json:"device"`               // as the line names it: sda, nvme0, ata3, dm-0
	Errors     uint64 `json:"errors,omitempty"`     // requests that failed, and devices that an array has given up
	Resets     uint64 `json:"resets,omitempty"`     // commands without an answer, and resets for that
	FileSystem uint64 `json:"fileSystem,omitempty"` // what a file system has found to be wrong
}

// declareLogged declares the check of errors in the kernel log. It advises only: a line is no measurement, and what
// etcd meets of the error the probe meets, too.
func declareLogged() declaration {
	return declaration{
		Check: Check{
			Name: "kernel-log", Component: Disk, Gates: Nothing,
			Source: "the kernel log, which quorumd-kernel-log.service scans every two minutes for the " +
				"devices below etcd's data",
			Limits: []Limit{{Of: "lines of one type about a device", Unit: "a day"}},
			Problems: []Problem{
				{
					KernelLogErrors, Disk, Warm, "The kernel logged new errors of a device under etcd's data.",
					"A request failed, a drive was reset, or a file system found corruption. A single occurrence " +
						"may be a loose cable; drives that start like this often fail soon.",
					"find the device with 'quorumctl health'; check 'journalctl -k -g NAME' and 'smartctl -x' of " +
						"the drive; replace it if the errors continue",
				},
			},
			Runbook: findingRunbook,
		},
		start: OK,
		gather: func(*track) evidence {
			return &counters{
				code: KernelLogErrors, span: loggedSpan, kept: map[string]growth{}, over: "a day",
				sick: "the log has a new device error", well: "the log has no new device error",
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
			}
		},
	}
}

// logged returns what is held against the devices of the chain. One that no line names has had no error so far.
func (d DevicesReading) logged(all []LoggedErrors) (counters []counter) {
	for _, device := range d.Chain {
		var sum LoggedErrors
		for _, e := range all {
			if e.Device == device.Name || slices.Contains(device.HangsOn, e.Device) {
				sum.Errors += e.Errors
				sum.Resets += e.Resets
				sum.FileSystem += e.FileSystem
			}
		}
		key := device.Name + "/" + device.Serial + "/"
		counters = append(counters,
			counter{key + "errors", device.Name, "I/O errors in the kernel log", float64(sum.Errors)},
			counter{key + "resets", device.Name, "timeouts and resets in the kernel log", float64(sum.Resets)},
			counter{key + "files", device.Name, "file system errors in the kernel log", float64(sum.FileSystem)})
	}
	return counters
}
