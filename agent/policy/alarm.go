// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package policy

import "fmt"

// An etcd alarm lasts until an operator disarms it, and each member reports all alarms. CORRUPT does not prove which
// member's data is wrong, so no member is removed and none is copied from; at its quota etcd rejects the records of new
// operations.

func vetoCorrupt() veto { return veto{EtcdCorrupt, false, corrupt} }
func vetoNoSpace() veto { return veto{EtcdNoSpace, false, noSpace} }

func corrupt(v View) (string, bool) {
	return fmt.Sprintf("%s: members hold different data, and which is correct is unknown; until the alarm is disarmed "+
			"no host joins, no member is removed and no healthy voter is taken down", v.Cluster.Alarms),
		v.Cluster.Reachable && !v.foreign() && !v.Cluster.Intact
}

func noSpace(v View) (string, bool) {
	return fmt.Sprintf("%s: etcd rejects writes, its largest database is %d MiB (limit: "+
			"--quota-backend-bytes); no host joins until space is freed and the alarm is disarmed", v.Cluster.Alarms,
			v.Cluster.DBSize>>20),
		v.Cluster.Reachable && !v.foreign() && !v.Cluster.Roomy
}

// refusedAsFull explains why a writing step was refused. An operation in flight is not stopped by an alarm, and retries
// its steps; the members may not have reported the alarm yet.
func refusedAsFull(v View) Reason {
	if r, stands := vetoNoSpace().reason(v); stands {
		return r
	}
	return Reason{EtcdNoSpace, v.Failed.Text}
}

// corruption begins nothing while members may differ.
func corruption(v View) (Decision, bool) { return alarmed(v, vetoCorrupt) }

// fullDatabase begins nothing that needs space.
func fullDatabase(v View) (Decision, bool) { return alarmed(v, vetoNoSpace) }

// alarmed waits for the end of an alarm. A pause comes first, and is named first.
func alarmed(v View, by func() veto) (Decision, bool) {
	r, stands := by().reason(v)
	if !stands {
		return Decision{}, false
	}
	if p := v.Pause; p != nil {
		return Decision{Reasons: []Reason{paused(p), r}}, true
	}
	return Decision{Reasons: []Reason{r}}, true
}

func paused(p *Pause) Reason { return Reason{Paused, fmt.Sprintf("by %s: %s", p.By, p.Reason)} }
