// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package health

import (
	"slices"
	"time"
)

// HardwareAlarm is the code of the check of alarms raised by the hardware's own monitors.
const HardwareAlarm Code = "HARDWARE_ALARM"

const (
	alarmFor  = 2 * time.Minute
	alarmWell = 5 * time.Minute
)

// checkAlarms is the check of chip alarms: fans, power, and critical temperatures.
var checkAlarms = advice{
	name: "alarms", component: Machine,
	source: "fan, power and critical-temperature alarms of hwmon",
	limit:  Limit{Of: "sensors with an alarm", Unit: "sensors"},
	code:   HardwareAlarm,
	title:  "A hardware sensor raised an alarm.",
	meaning: "A fan, a power supply or a temperature is outside its limits. The machine may throttle its CPUs, or " +
		"power itself off.",
	remedy: "check 'sensors' and the event log of the BMC; replace the part that raised the alarm",
	measure: lists(alarmFor, alarmWell, listed{
		bad:     "a sensor raises an alarm",
		well:    "no sensor raises an alarm",
		missing: noAlarm,
		look:    alarming,
	}),
}

// noAlarm returns why no alarm can be read; empty if one can.
func noAlarm(in Input) string {
	if why := in.Hardware.Sensors.absent(); why != "" {
		return why
	}
	if !slices.ContainsFunc(in.Hardware.Sensors.All, func(s Sensor) bool { return !s.Drive }) {
		return "no sensor supports alarms"
	}
	return ""
}

func alarming(in Input, _ bool) (found []string) {
	for _, s := range in.Hardware.Sensors.All {
		if s.Alarm {
			found = append(found, s.Of+" "+s.Label)
		}
	}
	return found
}
