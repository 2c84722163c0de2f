// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package health

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
)

// DriveWearsOut is the code of the check of how fast the drives under etcd's data wear.
const DriveWearsOut Code = "DRIVE_WEARS_OUT"

const (
	wearAdvises = 90      // days of operation until the rated endurance is used up
	wearSpan    = 30 * 24 // power-on hours
	wearShort   = 3 * 24  // power-on hours; steps that took less time are likely a correction by the drive
	// wearSteps is how many steps of the used percentage a rate needs after the first one, which begins the
	// measurement.
	wearSteps = 3
	wearKept  = 32 // steps per drive
)

// DriveWear is how the used endurance of a drive under etcd's data rose in the last 30 days. Its time is the drive's
// power-on hours, which no clock of the host can change.
type DriveWear struct {
	Drive string     `json:"drive"` // see Drive.identity
	Used  int        `json:"used"`  // the last reported percentage
	Steps []WearStep `json:"steps,omitempty"`
}

// WearStep is when a drive first reported a percentage.
type WearStep struct {
	Hours int `json:"hours"` // power-on hours
	Used  int `json:"used"`
}

// declareWearOut declares the check of how fast the drives under etcd's data wear. It keeps the past wear in [History],
// because a month is longer than a host usually runs without a reboot.
func declareWearOut(c *comparison) declaration {
	return advice{
		name: "wear-out", component: Machine, behind: []string{"smart", "drive-wear"},
		source: "used endurance and power-on hours from " + smartSource + ", over the last 30 days of operation",
		limit: Limit{
			Of: "days of operation until the rated endurance is used up", Unit: "days", Enter: wearAdvises,
			Leave: wearAdvises, Below: true,
		},
		code:  DriveWearsOut,
		title: "A drive under etcd's data wears out within months.",
		meaning: "At the present rate, its rated endurance will soon be used up. The drive may then work for a long " +
			"time, but it may also reject writes at any time.",
		remedy: "plan its replacement; 'iotop -ao' shows which programs write, and 'smartctl -A /dev/NAME' how " +
			"worn the drive is",
		measure: func(a advice, at *track) evidence {
			return lists(0, drivesFor, eachDrive(
				"the rated endurance of a drive under etcd's data will be used up within 90 days",
				"no drive under etcd's data will use up its rated endurance within 90 days",
				reporting(etcdDrives, Drive.wears,
					"no drive under etcd's data reports its wear and its power-on hours"),
				func(in Input, d Drive) string {
					if !d.wears() {
						return ""
					}
					return c.history.wear(d, in.Hardware.Drives.All).wearsOut(*d.Hours)
				}))(a, at)
		},
	}.declare()
}

// wears reports whether a drive reports what the check needs.
func (d Drive) wears() bool { return d.Serial != "" && d.Used != nil && d.Hours != nil }

// identity returns a hash of the drive's model and serial number.
func (d Drive) identity() string {
	sum := sha256.Sum256([]byte(d.Model + " " + d.Serial))
	return hex.EncodeToString(sum[:8])
}

// wear adds what a drive reports to the history, and returns how it has worn. If the history is full, it forgets a
// drive that is not present any longer.
func (h *History) wear(d Drive, present []Drive) *DriveWear {
	id := d.identity()
	i := slices.IndexFunc(h.Wear, func(w DriveWear) bool { return w.Drive == id })
	if i < 0 {
		if len(h.Wear) >= MaxDisks {
			gone := slices.IndexFunc(h.Wear, func(w DriveWear) bool {
				return !slices.ContainsFunc(present, func(d Drive) bool { return d.identity() == w.Drive })
			})
			if gone < 0 {
				return &DriveWear{}
			}
			h.Wear = slices.Delete(h.Wear, gone, gone+1)
		}
		h.Wear, i = append(h.Wear, DriveWear{Drive: id, Used: *d.Used}), len(h.Wear)
	}
	h.Wear[i].add(*d.Hours, *d.Used)
	return &h.Wear[i]
}

// add records a reading. If a value has fallen, the drive was reset, and add discards its past.
func (w *DriveWear) add(hours, used int) {
	n := len(w.Steps)
	if used < w.Used || n > 0 && hours < w.Steps[n-1].Hours {
		w.Used, w.Steps = used, nil
	}
	if used > w.Used {
		w.Used, w.Steps = used, append(w.Steps, WearStep{hours, used})
	}
	w.Steps = slices.DeleteFunc(w.Steps, func(s WearStep) bool { return hours-s.Hours > wearSpan })
	w.Steps = w.Steps[max(0, len(w.Steps)-wearKept):]
}

// wearsOut describes a drive whose rated endurance will be used up soon; empty otherwise. The rate is measured from
// the first step: only at a step has the drive just reached the whole percentage that it reports. The measurement
// extends to now rather than to the last step, so that the rate falls while the drive does not wear.
func (w *DriveWear) wearsOut(hours int) string {
	if len(w.Steps) <= wearSteps || w.Used >= usedMost {
		return ""
	}
	first := w.Steps[0]
	span, grown := hours-first.Hours, w.Used-first.Used
	if span < wearShort {
		return ""
	}
	days := (usedMost - w.Used) * span / grown / 24
	if days > wearAdvises {
		return ""
	}
	return fmt.Sprintf("%d %% of its rated endurance is used, %d percentage points more than %d days of operation "+
		"ago; at this rate, all of it will be used in %d days, limit %d days",
		w.Used, grown, span/24, days, wearAdvises)
}

// check returns an error if the numbers are impossible.
func (w *DriveWear) check() error {
	if len(w.Drive) > diskMost || len(w.Steps) > wearKept || w.Used < 0 || w.Used > 255 {
		return errors.New("it has impossible wear data of a drive")
	}
	last := WearStep{}
	for _, s := range w.Steps {
		if s.Hours < last.Hours || s.Used <= last.Used || s.Used > w.Used {
			return errors.New("it has impossible wear steps of a drive")
		}
		last = s
	}
	return nil
}
