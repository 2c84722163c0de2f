// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package health

import (
	"cmp"
	"fmt"
	"time"
)

// EtcdVersionUnsafe is the code of the check of the version of etcd.
const EtcdVersionUnsafe Code = "ETCD_VERSION_UNSAFE"

// securityFloor is a minor version's first patch release without known vulnerabilities. It names the newest advisories
// that it fixes, and the date of their disclosure.
type securityFloor struct {
	major, minor, patch int
	disclosed, as       string
}

// securityFloors returns the floors of all minor versions that still receive fixes. Older versions receive none: the
// newest of them, 3.4, received fixes until May 2026. See https://github.com/etcd-io/etcd/security/advisories; as of
// 2026-11-22.
func securityFloors() []securityFloor {
	const disclosed, as = "2026-07-23", "GHSA-6vch-q96h-7gc3, GHSA-xg4h-6gfc-h4m8"
	return []securityFloor{{3, 5, 33, disclosed, as}, {3, 6, 14, disclosed, as}, {3, 7, 1, disclosed, as}}
}

// checkVersion is the check of the version of the local etcd. It only advises: membership depends on a different
// minimum version, which the policy checks.
var checkVersion = advice{
	name: "etcd-version", component: Etcd,
	source:  "the status of the local member",
	limit:   Limit{Of: "patch releases behind the first fixed release of its minor version", Unit: "releases"},
	code:    EtcdVersionUnsafe,
	title:   "This version of etcd has known vulnerabilities.",
	meaning: "Newer releases fix published security advisories. A newer patch release needs no data migration.",
	remedy: "install a newer patch release of etcd on all hosts and roll it out with 'quorumctl rollout start " +
		"restart --reason …'; if the minor version no longer receives fixes, upgrade to the next one: see " +
		"'quorumctl upgrade plan VERSION --command NAME'",
	measure: func(a advice, at *track) evidence {
		var version string
		return exceeds(0, time.Minute,
			func(in Input) Figure {
				if !in.Etcd.Alarms.Known { // etcd did not return its status
					return in.Etcd.Alarms
				}
				version = in.Etcd.Version
				behind, _ := belowFloor(version)
				return behind
			},
			func(float64, Limit) string {
				_, text := belowFloor(version)
				return text
			},
		)(a, at)
	},
}

// belowFloor returns how many patch releases a version is behind the first one with all known fixes (1 if its minor
// version is no longer maintained), and the comparison as text.
func belowFloor(version string) (Figure, string) {
	var major, minor, patch int
	if n, err := fmt.Sscanf(version, "%d.%d.%d", &major, &minor, &patch); err != nil || n < 3 {
		return Figure{Absent: "the local member does not report its version"}, ""
	}
	oldest := securityFloors()[0]
	for _, f := range securityFloors() {
		if f.major != major || f.minor != minor {
			continue
		}
		return Figure{Value: float64(max(0, f.patch-patch)), Known: true},
			fmt.Sprintf("etcd is %d.%d.%d, limit %d.%d.%d, which fixes the advisories of %s (%s)", major, minor, patch,
				f.major, f.minor, f.patch, f.disclosed, f.as)
	}
	if cmp.Or(cmp.Compare(major, oldest.major), cmp.Compare(minor, oldest.minor)) < 0 {
		return Figure{Value: 1, Known: true}, fmt.Sprintf("etcd is %d.%d.%d, which no longer receives fixes, limit "+
			"%d.%d.%d", major, minor, patch,
			oldest.major, oldest.minor, oldest.patch)
	}
	return Figure{Known: true}, fmt.Sprintf("etcd is %d.%d.%d", major, minor, patch)
}
