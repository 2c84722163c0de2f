// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package health

import "fmt"

// CapacitorFailed is the code of the check of the power-loss protection of the drives under etcd's data.
const CapacitorFailed Code = "DRIVE_CAPACITOR_FAILED"

// checkCapacitor is the check of the capacitors that complete a drive's writes after a power cut. A drive whose
// capacitors have failed still works, so the finding keeps a host from joining, but removes no voter.
//
// Its component is Machine and not Disk, because failed capacitors have no cause in common with other hosts: see
// [Code.Shared].
var checkCapacitor = advice{
	name: "capacitor", component: Machine, gates: Joins, behind: []string{"smart"},
	source: "bit 4 of the critical warning of NVMe drives, and attribute 175 of SATA drives if smartctl names it " +
		"Power_Loss_Cap_Test; " + smartSource,
	limit: Limit{Of: "drives under etcd's data whose capacitors have failed", Unit: "drives"},
	code:  CapacitorFailed,
	title: "The power-loss protection of a drive under etcd's data has failed.",
	meaning: "In a power cut the drive loses writes that it has acknowledged, unless it has fallen back to flushing " +
		"each write, which is slow. A member that forgets writes breaks the cluster's guarantees. While the finding " +
		"lasts, a host that is not a voter does not become one.",
	remedy: "check 'smartctl -x /dev/NAME'; replace the drive; on a voter, run 'quorumctl maintenance on " +
		"--reason …' first",
	measure: func(a advice, at *track) evidence {
		return lists(0, drivesFor, eachDrive("the capacitors of a drive under etcd's data have failed",
			"no drive under etcd's data reports failed capacitors",
			reporting(etcdDrives, Drive.testsCapacitor,
				"no drive under etcd's data reports whether its capacitors work"), capacitorFailed))(a, at)
	},
}

// testsCapacitor reports whether the drive would report failed capacitors.
func (d Drive) testsCapacitor() bool { return d.Warns || d.Capacitor != nil }

// capacitorFailed describes failed capacitors; empty if they work.
func capacitorFailed(_ Input, d Drive) string {
	switch {
	case d.Warnings&warningCapacitor != 0:
		return fmt.Sprintf("%s (critical warning 0x%02x, limit 0)", warnings()[4], d.Warnings)
	case d.Capacitor != nil && d.Capacitor.failed():
		return fmt.Sprintf("%s (Power_Loss_Cap_Test %d, limit %d)", warnings()[4], d.Capacitor.Value,
			d.Capacitor.Threshold)
	}
	return ""
}
