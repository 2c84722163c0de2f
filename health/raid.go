// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package health

import (
	"fmt"
	"strings"
	"time"
)

// The codes of the checks of RAID arrays.
const (
	RAIDDegraded  Code = "RAID_DEGRADED"
	RAIDResyncing Code = "RAID_RESYNCING"
)

// Array is a RAID array of the kernel (md).
type Array struct {
	Name    string   `json:"-"`
	Level   string   `json:"level"`
	Missing int      `json:"missing"`          // number of missing member devices
	Failed  []string `json:"failed,omitempty"` // member devices that the kernel has ejected but that are still present
	// Doing is what the array does in addition to serving I/O: "idle", "frozen", "check", "repair", "resync", "recover"
	// or "reshape"; empty if unknown. A check reads all member devices, monthly on most systems; it does not mean that
	// anything is wrong.
	Doing  string  `json:"doing,omitempty"`
	Done   float64 `json:"done,omitempty"` // progress of Doing, from 0 to 1
	Broken bool    `json:"-"`              // more member devices are missing than the array can work without
	// Absent is why the state of the array is unknown, as a stable text; empty if the state is known.
	Absent string `json:"-"`
}

// checkRAID is the check of arrays with missing member devices.
var checkRAID = advice{
	name: "raid", component: Disk,
	source: "degraded, array_state and sync_action of the RAID arrays under etcd's data (md)",
	limit:  Limit{Of: "missing member devices of an array", Unit: "devices"},
	code:   RAIDDegraded,
	title:  "A RAID array under etcd's data is degraded.",
	meaning: "Unless the finding says that the array has failed, no data is lost. The next drive failure " +
		"may destroy it, and writes are slower during the rebuild.",
	remedy: "check 'cat /proc/mdstat' and 'mdadm --detail'; replace the failed drive and add the new one " +
		"with 'mdadm --add'",
	measure: func(a advice, at *track) evidence {
		l := eachArray("an array is degraded", "no array is degraded", Array.lacking)
		l.partly = func(in Input) []string {
			all := in.partly(place.absent)
			for _, p := range in.places() {
				all = append(all, p.unknownArrays()...)
			}
			return all
		}
		return lists(0, time.Minute, l)(a, at)
	},
}

// checkResync is the check of arrays that resynchronise their member devices. It ignores the periodic check of an
// array, which is not a resync.
var checkResync = advice{
	name: "resync", component: Disk, behind: []string{"raid"},
	source: "sync_action of the RAID arrays under etcd's data (md); a check or repair does not count",
	limit:  Limit{Of: "arrays that resync for 1 min or longer", Unit: "arrays"},
	code:   RAIDResyncing,
	title:  "A RAID array under etcd's data is resyncing.",
	meaning: "The host went down without stopping the array, or the array is new or being reshaped. Until " +
		"the resync ends, the member devices may differ, and writes are slower.",
	remedy: "none: it ends by itself; 'cat /proc/mdstat' shows the progress",
	measure: lists(time.Minute, time.Minute,
		eachArray("an array is resyncing", "no array is resyncing", Array.resyncing)),
}

// eachArray returns the evidence of a check that lists the arrays below etcd's data for which wrong returns a text.
func eachArray(bad, well string, wrong func(Array) string) listed {
	return listed{
		bad: bad, well: well,
		missing: func(in Input) string {
			return in.missing(func(p place) string {
				silent := p.unknownArrays()
				if why := p.absent(); why != "" || len(silent) == 0 || len(silent) < len(p.Arrays) {
					return why
				}
				return silent[0]
			})
		},
		look: func(in Input, _ bool) (found []string) {
			for _, p := range in.places() {
				for _, a := range p.Arrays {
					if text := wrong(a); text != "" {
						found = append(found, fmt.Sprintf("%s (%s) %s", a.Name, a.Level, text))
					}
				}
			}
			return found
		},
	}
}

// unknownArrays names the arrays whose state the kernel does not report.
func (d DevicesReading) unknownArrays() (all []string) {
	for _, a := range d.Arrays {
		if a.Absent != "" {
			all = append(all, a.Name+": "+a.Absent)
		}
	}
	return all
}

func (a Array) lacking() string {
	if a.Missing == 0 && !a.Broken {
		return ""
	}
	text := "is missing " + plural(a.Missing, "member device")
	if a.Broken {
		text = "has failed: too many member devices are missing"
	}
	if len(a.Failed) > 0 {
		text += ", failed: " + strings.Join(a.Failed, " ")
	}
	if a.Doing == "recover" {
		text += fmt.Sprintf("; rebuild %.0f %% done", 100*a.Done)
	}
	return text
}

func (a Array) resyncing() string {
	if a.Doing != "resync" && a.Doing != "reshape" {
		return ""
	}
	return fmt.Sprintf("%s, %.0f %% done", busyWith(a.Doing), 100*a.Done)
}
