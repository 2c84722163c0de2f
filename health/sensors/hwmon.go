// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package sensors

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/quorumd/quorumd/health"
)

const (
	hwmon        = "class/hwmon"
	mostSensors  = 256
	highestLimit = 200 // °C; drives without a limit report the largest possible number
)

// Sensors reads the hardware monitors (hwmon). Unlike [Reader.Read] it queries chips and drives, which may answer late
// or never.
func (r *Reader) Sensors() health.Several[health.Sensor] {
	chips, err := filepath.Glob(filepath.Join(r.sys, hwmon, "hwmon*"))
	if err != nil || len(chips) == 0 {
		return health.Several[health.Sensor]{Absent: "the kernel has no driver for any sensor of this machine (hwmon)"}
	}
	var all []health.Sensor
	for _, chip := range chips[:min(len(chips), mostOfAKind)] {
		if name := text(filepath.Join(chip, "name")); name == "nvme" || name == "drivetemp" {
			all = append(all, thermometer(chip)...)
		} else {
			all = append(all, alarms(chip, name)...)
		}
	}
	return health.Several[health.Sensor]{Known: true, All: all[:min(len(all), mostSensors)]}
}

// thermometer returns the temperature sensor of a drive; none if the temperature or the drive is unknown. Its limit is
// 0 if the drive reports no plausible one.
func thermometer(chip string) []health.Sensor {
	s := health.Sensor{Of: driveOf(chip), Label: "temp1", Drive: true}
	var known bool
	if s.Celsius, known = celsius(filepath.Join(chip, "temp1_input")); !known || s.Of == "" {
		return nil
	}
	for _, limit := range []string{"temp1_max", "temp1_crit"} {
		if value, known := celsius(filepath.Join(chip, limit)); known && value > 0 && value < highestLimit {
			s.Limit = value
			break
		}
	}
	return []health.Sensor{s}
}

// driveOf returns the drive to which a chip belongs.
func driveOf(chip string) string {
	if disks, err := filepath.Glob(filepath.Join(chip, "device/block/*")); err == nil && len(disks) == 1 {
		return filepath.Base(disks[0])
	}
	device, err := os.Readlink(filepath.Join(chip, "device"))
	if err != nil {
		return ""
	}
	return filepath.Base(device)
}

// alarming reports whether an alarm means the same on every machine. Other alarms, such as those of non-critical
// voltages and of chassis intrusion, are often not configured.
func alarming(name string) bool {
	of, what, _ := strings.Cut(name, "_")
	switch strings.TrimRight(of, "0123456789") + " " + what {
	case "temp crit_alarm", "temp emergency_alarm", "fan alarm", "fan fault", "power alarm", "power crit_alarm",
		"curr crit_alarm", "in crit_alarm", "in lcrit_alarm":
		return true
	}
	return false
}

func alarms(chip, name string) (all []health.Sensor) {
	files, err := os.ReadDir(chip)
	if err != nil {
		return nil
	}
	for _, f := range files {
		if !alarming(f.Name()) {
			continue
		}
		value := text(filepath.Join(chip, f.Name()))
		if value != "0" && value != "1" {
			continue
		}
		of, what, _ := strings.Cut(f.Name(), "_")
		if strings.HasPrefix(of, "fan") && what == "alarm" && !spinsTooSlowly(chip, of) {
			value = "0"
		}
		label := text(filepath.Join(chip, of+"_label"))
		if label == "" {
			label = of
		}
		all = append(all, health.Sensor{
			Of: name, Label: label + " " + strings.ReplaceAll(what, "_", " "), Alarm: value == "1",
		})
	}
	return all
}

// spinsTooSlowly reports whether a spinning fan is below its configured limit. Many boards raise an alarm for a fan
// with limit 0, and for every connector without a fan.
func spinsTooSlowly(chip, fan string) bool {
	turns, err := strconv.ParseUint(text(filepath.Join(chip, fan+"_input")), 10, 32)
	least, errLeast := strconv.ParseUint(text(filepath.Join(chip, fan+"_min")), 10, 32)
	return err == nil && errLeast == nil && turns > 0 && turns < least
}

// celsius reads a temperature. The kernel reports it in thousandths of a degree.
func celsius(path string) (float64, bool) {
	n, err := strconv.ParseInt(text(path), 10, 32)
	return float64(n) / 1000, err == nil
}

// text reads a small file of one line; empty if the file is unreadable, or if the line has more than 64 bytes or is not
// printable ASCII.
func text(path string) string {
	all, err := read(path)
	line := strings.TrimSpace(all)
	if err != nil || len(line) > 64 || strings.ContainsFunc(line, func(r rune) bool { return r < ' ' || r > '~' }) {
		return ""
	}
	return line
}
