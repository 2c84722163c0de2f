// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package health

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// The codes of the checks of firmware that makes a drive fail at a known age.
const (
	FirmwareDefect     Code = "DRIVE_FIRMWARE_DEFECT"
	FirmwareDefectSoon Code = "DRIVE_FIRMWARE_DEFECT_SOON"
)

const (
	firmwareAdvises = 90 * 24 // power-on hours before the drive fails
	firmwareGates   = 7 * 24
	// firmwareDefectsAsOf is the date of the newest advisory in firmwareDefects.
	firmwareDefectsAsOf = "2020-03-20"
)

// firmwareDefect is a published defect that makes a drive fail, and lose its data, at a certain number of power-on
// hours.
type firmwareDefect struct {
	advisory string
	models   []string
	// A firmware revision is the prefix followed by a number. Revisions with a number below fixed have the defect.
	prefix string
	fixed  int
	ends   int // power-on hours at which the drive fails
}

// firmwareDefects returns the published defects. A drive has one only if its exact model is listed.
func firmwareDefects() []firmwareDefect {
	return []firmwareDefect{
		{
			advisory: "HPE a00092491", prefix: "HPD", fixed: 8, ends: 32768,
			models: []string{
				"MO0400JFFCF", "MO0800JFFCH", "MO1600JFFCK", "MO3200JFFCL", "VK000960JWSSQ", "VK001920JWSSR",
				"VK003840JWSST", "VK007680JWSSU", "VO000480JWDAR", "VO000960JWDAT", "VO001920JWDAU", "VO003840JWDAV",
				"VO007680JWCNK", "VO015300JWCNL", "VO015300JWSSV", "VO0480JFDGT", "VO0960JFDGU", "VO1920JFDGV",
				"VO3840JFDHA",
			},
		},
		{
			advisory: "HPE a00097382", prefix: "HPD", fixed: 7, ends: 40000,
			models: []string{"EK0800JVYPN", "EO1600JVYPP", "MK0800JVYPQ", "MO1600JVYPR"},
		},
	}
}

const firmwareSource = "model, firmware revision and power-on hours from " + smartSource + ", compared with a " +
	"list of published defects as of " + firmwareDefectsAsOf

// checkFirmware is the check of all drives for firmware that will make them fail.
var checkFirmware = advice{
	name: "firmware", component: Machine, behind: []string{"smart"},
	source: firmwareSource,
	limit: Limit{
		Of: "power-on hours left", Unit: "hours", Enter: firmwareAdvises, Leave: firmwareAdvises, Below: true,
	},
	code:  FirmwareDefect,
	title: "The firmware of a drive makes it fail within months.",
	meaning: "At a certain number of power-on hours the drive fails, and its data is lost. Drives that were put into " +
		"service together fail together, possibly on the hosts of several voters.",
	remedy: "install the fixed firmware on one host at a time, after 'quorumctl maintenance on --reason …'",
	measure: func(a advice, at *track) evidence {
		return lists(0, drivesFor, eachDrive("the firmware of a drive makes it fail within 90 days of operation",
			"no drive has firmware that makes it fail within 90 days of operation",
			reporting(everyDrive, Drive.identifies, "no drive reports its model and firmware"),
			func(in Input, d Drive) string {
				if d.failsSoon() && in.holdsData(d) {
					return "" // checkFirmwareSoon reports it
				}
				return d.defect(firmwareAdvises)
			}))(a, at)
	},
}

// checkFirmwareSoon is the check of the drives under etcd's data for firmware that is about to make them fail. Its
// finding keeps a host from joining, but removes no voter.
var checkFirmwareSoon = advice{
	name: "firmware-soon", component: Machine, gates: Joins, behind: []string{"smart", "firmware"},
	source: firmwareSource,
	limit:  Limit{Of: "power-on hours left", Unit: "hours", Enter: firmwareGates, Leave: firmwareGates, Below: true},
	code:   FirmwareDefectSoon,
	title:  "The firmware of a drive under etcd's data makes it fail within days.",
	meaning: "At a certain number of power-on hours the drive fails, and its data is lost. Drives that were put into " +
		"service together fail together, possibly on the hosts of several voters. While the finding lasts, a host " +
		"that is not a voter does not become one.",
	remedy: "install the fixed firmware now, on one host at a time, after 'quorumctl maintenance on --reason …'; " +
		"save a snapshot first ('quorumctl snapshot save')",
	measure: func(a advice, at *track) evidence {
		return lists(0, drivesFor, eachDrive(
			"the firmware of a drive under etcd's data makes it fail within 7 days of operation",
			"no drive under etcd's data has firmware that makes it fail within 7 days of operation",
			reporting(etcdDrives, Drive.identifies, "no drive under etcd's data reports its model and firmware"),
			func(_ Input, d Drive) string { return d.defect(firmwareGates) }))(a, at)
	},
}

func (d Drive) identifies() bool { return d.Model != "" && d.Firmware != "" }

// known returns the published defect of the drive's firmware, or nil.
func (d Drive) known() *firmwareDefect {
	words := strings.Fields(d.Model) // SCSI puts the vendor first
	if len(words) == 0 {
		return nil
	}
	for _, defect := range firmwareDefects() {
		number, is := strings.CutPrefix(d.Firmware, defect.prefix)
		n, err := strconv.Atoi(number)
		if is && err == nil && n < defect.fixed && slices.Contains(defect.models, words[len(words)-1]) {
			return &defect
		}
	}
	return nil
}

// failsSoon reports whether the firmware makes the drive fail within days.
func (d Drive) failsSoon() bool { return d.defect(firmwareGates) != "" }

// defect describes the published defect of the drive's firmware if the drive fails within the given number of hours,
// and returns "" otherwise. If the age of the drive is unknown, it returns the defect for firmwareAdvises, but not for
// a shorter time.
func (d Drive) defect(within int) string {
	of := d.known()
	if of == nil {
		return ""
	}
	age := "and its age is unknown"
	if d.Hours != nil {
		left := max(of.ends-*d.Hours, 0)
		if left > within {
			return ""
		}
		age = fmt.Sprintf("in %d days of operation, limit %d days", left/24, within/24)
	} else if within < firmwareAdvises {
		return ""
	}
	return fmt.Sprintf("its firmware %s makes it fail at %d power-on hours, %s; fixed in %s%d (%s; known defects as "+
		"of %s)", d.Firmware, of.ends, age, of.prefix, of.fixed, of.advisory, firmwareDefectsAsOf)
}
