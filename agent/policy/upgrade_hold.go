// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"cmp"
	"fmt"
)

// lastToUpgrade returns why an upgrade does not take this host down yet, because its member is the last one with the
// older minor version; empty if it is not. If the version of a member is unknown, that is not certain: sure is false,
// and this host waits until the version is known.
func lastToUpgrade(v View) (why string, sure bool) {
	r := v.Rollout
	if r == nil || !r.Runs || !r.Hold {
		return "", false
	}
	to := ParseVersion(r.Upgrade).minor()
	own, listed := v.member()
	if !listed || !to.Known() || own.Version.Known() && !own.Version.minor().Less(to) {
		return "", false
	}
	for _, m := range v.Cluster.Members {
		switch {
		case !m.Version.Known():
			why = "the etcd version of " + m.label() + " is not known, so this host may be the last one to upgrade"
		case m.ID != own.ID && m.Version.minor().Less(to):
			return "", false
		}
	}
	if why != "" {
		return why, false
	}
	return fmt.Sprintf("before %s, the last member with etcd %s: once it runs %s, no member can be rolled back",
		cmp.Or(v.Self.Name, own.label()), own.Version.minorText(), to.minorText()), true
}

// upgradeHeld returns why this host's request waits although the rollout has reached the host: its member is, or may
// be, the last one with the older minor version.
func upgradeHeld(v View) (string, bool) {
	a := v.Asked
	if a == nil || v.Rollout == nil || a.Rollout != v.Rollout.ID || v.foreign() || !notBegun(v) {
		return "", false
	}
	why, _ := lastToUpgrade(v)
	return why, why != ""
}
