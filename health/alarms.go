// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package health

import (
	"slices"
	"time"
)

// HardwareAlarm is the code of the check of what the hardware's monitors find themselves.
const HardwareAlarm Code = "HARDWARE_ALARM"

const (
	alarmFor  = 2 * time.Minute
	alarmWell = 5 * time.Minute
)

// declareAlarms declares the check of the alarms of chips: fans, power, and temperatures that are critical.
func declareAlarms() declaration {
	return declaration{
		Check: Check{
			Name: "alarms", Component: Machine, Gates: Nothing,
			Source: "fan, power and critical alarms of hwmon",
			Limits: []Limit{{Of: "alarms", Unit: "of any chip"}},
			Problems: []Problem{
				{
					HardwareAlarm, Machine, Warm, "A sensor of the hardware gives an alarm.",
					"A fan turns too slowly or has failed, a power supply is beyond what it can give, or a part is " +
						"as hot as it may be. Machines slow down, and then switch themselves off.",
					"look at 'sensors' and at the machine's management controller; mend what it names",
				},
			},
			Runbook: findingRunbook,
		},
		start: OK,
		gather: func(at *track) evidence {
			return &listed{
				spell: spell{code: HardwareAlarm, track: at, badFor: alarmFor, wellFor: alarmWell},
				sick:  "a chip gives an alarm", well: "no chip gives an alarm", look: alarming,
				missing: noAlarm,
			}
		},
	}
}

// noAlarm says why nothing could give an alarm.
func noAlarm(in Input) string {
	if why := in.Hardware.Sensors.absent(); why != "" {
		return why
	}
	if !slices.ContainsFunc(in.Hardware.Sensors.All, func(s Sensor) bool { return !s.Drive }) {
		return "no chip has an alarm"
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
