// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package policy

import "fmt"

// etcd keeps an alarm until it is disarmed, and each member reports all alarms. CORRUPT does not show which member's
// data is wrong: a removal could drop the correct copy, and a new member could receive a wrong one. At its quota, etcd
// rejects writes, including the records of new operations.
//
// Agents also compare the data themselves, see [Corruption]. Without an alarm, two results have the same effect as
// CORRUPT: no majority of the voters has the same data, or the leader's data differs from that of a majority. A new
// member would receive its data from that leader, so no host joins until leadership has been transferred.

func vetoCorrupt() veto { return veto{EtcdCorrupt, false, corrupt} }
func vetoNoSpace() veto { return veto{EtcdNoSpace, false, noSpace} }

func corrupt(v View) (string, bool) {
	if !v.Cluster.Reachable || v.foreign() {
		return "", false
	}
	const stops = "no host joins, no member is removed and no healthy voter is taken down"
	if !v.Cluster.Intact {
		return fmt.Sprintf("%s: members hold different data, and it is unknown which is correct; until the alarm is "+
			"disarmed, %s", v.Cluster.Alarms, stops), true
	}
	return v.dataDiffers(stops)
}

// agrees reports whether there is no CORRUPT alarm, and the voters' data is not known to be divided: no majority has
// the same data.
func (c Cluster) agrees() bool { return c.Intact && !c.Divided }

// dataDiffers reports whether the comparison of the voters' data stops operations, although etcd has raised no alarm.
func (v View) dataDiffers(stops string) (string, bool) {
	if v.Cluster.Divided {
		return "the voters' data differs, and no majority agrees, so it is unknown which is correct: " + stops,
			true
	}
	for m := range v.Cluster.voters() {
		if m.Leader && m.Corrupt.Times > 0 {
			return fmt.Sprintf("%s leads, and its data differs from that of a majority of the voters: until another "+
				"voter leads, %s", m.label(), stops), true
		}
	}
	return "", false
}

func noSpace(v View) (string, bool) {
	return fmt.Sprintf("%s: etcd rejects writes, and its largest database is %d MiB (limit: "+
			"--quota-backend-bytes); no host joins until space is freed and the alarm is disarmed", v.Cluster.Alarms,
			v.Cluster.DBSize>>20),
		v.Cluster.Reachable && !v.foreign() && !v.Cluster.Roomy
}

// refusedAsFull returns why etcd refused a step that writes. An operation in flight retries its steps despite an alarm,
// and etcd may refuse a write before the members report the alarm.
func refusedAsFull(v View) Reason {
	if r, holds := vetoNoSpace().reason(v); holds {
		return r
	}
	return Reason{EtcdNoSpace, v.Failed.Text}
}

// corruption blocks all later concerns while the CORRUPT alarm is raised, or while the comparison of the voters' data
// stops operations.
func corruption(v View) (Decision, bool) { return awaitDisarm(v, vetoCorrupt) }

// awaitDisarm waits while the veto applies. If the cluster is also paused, the pause is the first reason.
func awaitDisarm(v View, by func() veto) (Decision, bool) {
	r, holds := by().reason(v)
	if !holds {
		return Decision{}, false
	}
	if p := v.Pause; p != nil {
		return Decision{Reasons: []Reason{paused(p), r}}, true
	}
	return Decision{Reasons: []Reason{r}}, true
}
