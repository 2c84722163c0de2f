// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package health

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"
)

// The codes of the checks of what drives report about themselves.
const (
	DriveFailing Code = "DRIVE_FAILING"
	DriveWorn    Code = "DRIVE_WORN"
	DriveHot     Code = "DRIVE_HOT"
)

const (
	smartSource = "smartctl, run by quorumd-smart.service every half hour"
	drivesFor   = 10 * time.Minute
	usedMost    = 100 // percent of the rated life
	cooler      = 5   // degrees below its limit at which a drive no longer counts as overheated
)

// The critical-warning bits that checks other than checkFailing report: the temperature (checkHeat), and failed
// capacitors of a drive under etcd's data (checkCapacitor).
const (
	warningHeat      = 1 << 1
	warningCapacitor = 1 << 4
)

// warnings returns the meaning of each bit of the critical warnings, in the order of the bits.
func warnings() []string {
	return []string{
		"its spare blocks are running out", "it is too hot or too cold", "its reliability is degraded",
		"it is read-only",
		"its capacitors have failed: a power cut loses writes", "its persistent memory is unreliable",
	}
}

// checkFailing is the check of what drives report about themselves. It only advises, because drives that report failure
// may run for another year, and a quarter of the drives that fail do not report it beforehand. The probe detects
// failures that would affect etcd.
var checkFailing = advice{
	name: "smart", component: Machine,
	source:  smartSource,
	limit:   Limit{Of: "drives with a critical warning or a failed self-assessment", Unit: "drives"},
	code:    DriveFailing,
	title:   "A drive reports that it is failing.",
	meaning: "The drive reports failure or a critical warning. Such drives fail more often than others.",
	remedy: "check 'smartctl -x /dev/NAME'; take the host down with 'quorumctl maintenance on --reason …' " +
		"and replace the drive",
	measure: func(a advice, at *track) evidence {
		l := eachDrive("a drive reports failure or a critical warning",
			"no drive reports failure or a critical warning", everyDrive, failing)
		l.partly = silentDrives
		return lists(0, drivesFor, l)(a, at)
	},
}

// drives is a function that returns the drives that a check is about, and why they cannot be checked; empty if they
// can.
type drives func(Input) ([]Drive, string)

func everyDrive(in Input) ([]Drive, string) {
	return in.Hardware.Drives.All, in.Hardware.Drives.absent()
}

// etcdDrives selects the drives under etcd's data.
func etcdDrives(in Input) (all []Drive, why string) {
	if why := cmp.Or(in.missing(place.absent), in.Hardware.Drives.absent()); why != "" {
		return nil, why
	}
	for _, d := range in.Hardware.Drives.All {
		if in.holdsData(d) {
			all = append(all, d)
		}
	}
	return all, ""
}

// reporting returns a function that selects the same drives as the given one, but also returns a reason if no drive
// reports what is needed: why a drive reports nothing at all, or else the given text.
func reporting(of drives, reports func(Drive) bool, none string) drives {
	return func(in Input) ([]Drive, string) {
		all, why := of(in)
		if why != "" || slices.ContainsFunc(all, func(d Drive) bool { return d.Absent == "" && reports(d) }) {
			return all, why
		}
		for _, d := range all {
			if d.Absent != "" {
				return all, d.silence()
			}
		}
		return all, none
	}
}

// holdsData reports whether a drive is one of those under etcd's data.
func (in Input) holdsData(drive Drive) bool {
	for _, p := range in.places() {
		if slices.ContainsFunc(p.Chain, drive.is) {
			return true
		}
	}
	return false
}

// is reports whether the drive is this device of the kernel. An NVMe drive has the name of its controller.
func (d Drive) is(device Device) bool {
	return device.Leaf() && (device.Name == d.Name || slices.Contains(device.AttachedTo, d.Name))
}

// eachDrive returns the evidence of a check that lists the selected drives for which look returns a text. A drive that
// no longer responds keeps its last text, because missing data is no recovery.
func eachDrive(bad, well string, of drives, look func(Input, Drive) string) listed {
	last := map[string]string{}
	return listed{
		bad: bad, well: well,
		missing: func(in Input) string {
			all, why := of(in)
			if slices.ContainsFunc(all, func(d Drive) bool { return d.Absent != "" && last[d.Name] != "" }) {
				return ""
			}
			return why
		},
		look: func(in Input, _ bool) (found []string) {
			before := last
			last = map[string]string{}
			all, _ := of(in)
			for _, d := range all {
				if d.Absent != "" {
					if what := before[d.Name]; what != "" {
						last[d.Name] = what
						found = append(found, what+", and the drive no longer responds")
					}
				} else if what := look(in, d); what != "" {
					last[d.Name] = d.title() + ": " + what
					found = append(found, last[d.Name])
				}
			}
			return found
		},
	}
}

// silentDrives lists the drives that report nothing, such as a drive behind a RAID controller, with the reason.
func silentDrives(in Input) (all []string) {
	for _, d := range in.Hardware.Drives.All {
		if d.Absent != "" {
			all = append(all, d.silence())
		}
	}
	if more := len(all) - listedMost; more > 0 {
		all = append(all[:listedMost], plural(more, "drive")+" more")
	}
	return all
}

// silence returns why the drive reports nothing.
func (d Drive) silence() string { return d.Name + ": " + d.Absent }

// failing describes those critical warnings of a drive that no other check reports. If the drive has no critical
// warning at all, it describes a failed self-assessment. Otherwise it returns "".
func failing(in Input, d Drive) string {
	reported := d.Warnings &^ warningHeat
	if in.holdsData(d) {
		reported &^= warningCapacitor
	}
	var said []string
	for bit, what := range warnings() {
		if reported&(1<<bit) != 0 {
			said = append(said, what)
		}
	}
	if len(said) > 0 {
		return fmt.Sprintf("%s (critical warning 0x%02x, limit 0)", strings.Join(said, " and "), d.Warnings)
	}
	switch {
	case reported != 0:
		return fmt.Sprintf("unknown warning (critical warning 0x%02x, limit 0)",
			d.Warnings)
	case d.Failed && d.Warnings == 0: // an overheated NVMe drive reports FAILED, too
		return "its SMART self-assessment is FAILED"
	}
	return ""
}

// checkWear is the check of the remaining life of drives.
var checkWear = advice{
	name: "drive-wear", component: Machine, behind: []string{"smart"},
	source: smartSource,
	limit:  Limit{Of: "rated endurance used", Unit: "%", Enter: usedMost - 1, Leave: usedMost - 1},
	also: []Limit{
		{Of: "spare blocks left", Unit: "% of the drive's own threshold", Enter: 100, Leave: 100, Below: true},
	},
	code:  DriveWorn,
	title: "A drive is worn out.",
	meaning: "Its rated endurance is used up, or its spare blocks are running out. The drive works for now, but in " +
		"the end it rejects writes.",
	remedy: "check 'smartctl -x /dev/NAME'; plan its replacement",
	measure: func(a advice, at *track) evidence {
		return lists(0, drivesFor, eachDrive(
			"a drive's spare blocks are below its own threshold, or its rated endurance is used up",
			"every drive has spare blocks and rated endurance left", everyDrive, worn))(a, at)
	},
}

// worn describes how worn a drive is; empty if it is not worn out.
func worn(_ Input, d Drive) string {
	switch {
	case d.Spare != nil && d.SpareLimit != nil && *d.Spare < *d.SpareLimit:
		return fmt.Sprintf("%d %% of its spare blocks are left, limit %d %%", *d.Spare, *d.SpareLimit)
	case d.Used != nil && *d.Used >= usedMost:
		return fmt.Sprintf("%d %% of its rated endurance is used, limit %d %%", *d.Used, usedMost)
	}
	return ""
}

// checkHeat is the check of the temperature of drives. A hot drive throttles itself.
var checkHeat = advice{
	name: "drive-heat", component: Machine,
	source: "hwmon of the drives, and the critical warnings of " + smartSource,
	limit:  Limit{Of: "temperature over the drive's own limit", Unit: "°C", Leave: -cooler},
	code:   DriveHot,
	title:  "A drive is overheating.",
	meaning: "Its temperature exceeds its own limit. It may throttle, which makes writes slower, and " +
		"shut down if that does not help.",
	remedy: "check fans, filters and the air inlet; 'sensors' lists all temperatures",
	measure: lists(time.Minute, drivesFor, listed{
		bad:     "a drive exceeds its own temperature limit, or reports a temperature warning",
		well:    fmt.Sprintf("every drive that was too hot is at least %d °C below its limit", cooler),
		missing: noTemperature,
		look:    tooHot,
	}),
}

// noTemperature returns why no overheated drive could be detected: no drive has critical warnings (see Drive.Warns),
// and no temperature sensor has a limit.
func noTemperature(in Input) string {
	warns := func(d Drive) bool { return d.Absent == "" && d.Warns }
	limited := func(s Sensor) bool { return s.Drive && s.Limit > 0 }
	switch {
	case slices.ContainsFunc(in.Hardware.Drives.All, warns), slices.ContainsFunc(in.Hardware.Sensors.All, limited):
		return ""
	case in.Hardware.Drives.Known:
		return "no drive reports its temperature and its limit"
	}
	return cmp.Or(in.Hardware.Sensors.absent(), "no drive reports its temperature and its limit")
}

// tooHot lists the overheated drives. A drive counts as overheated until it is a few degrees below its limit.
func tooHot(in Input, bad bool) (found []string) {
	covered := map[string]bool{}
	for _, s := range in.Hardware.Sensors.All {
		over := s.Limit
		if bad {
			over -= cooler
		}
		if s.Drive && s.Limit > 0 {
			covered[s.Of] = true
			if s.Celsius > over {
				found = append(found, fmt.Sprintf("%s: %.0f °C, limit %.0f °C", s.Of, s.Celsius, s.Limit))
			}
		}
	}
	for _, d := range in.Hardware.Drives.All {
		if d.Absent == "" && d.Warnings&warningHeat != 0 && !covered[d.Name] {
			found = append(found, fmt.Sprintf("%s: %s (critical warning 0x%02x, limit 0)", d.title(),
				warnings()[1], d.Warnings))
		}
	}
	return found
}
