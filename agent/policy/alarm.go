// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package policy

import "fmt"

// etcd keeps an alarm until a client disarms it, and each member reports all alarms. CORRUPT does not show which
// member's data is wrong: a removal could drop the correct copy, and a new member could receive a wrong one. At its
// quota, etcd rejects writes, including the records of new operations.
//
// Agents also compare the data themselves; see [Corruption]. Without an alarm, two results have the same effect as
// CORRUPT: no majority of the voters has the same data, or the leader's data differs from that of a majority. A new
// member would receive its data from that leader, so no host joins until leadership has been transferred.

func vetoCorrupt() veto { return veto{EtcdCorrupt, false, corrupt} }

// vetoCorruptAlarm is vetoCorrupt for removals on request. It ignores the agents' own comparison of the data: an
// operator who has decided whose data is correct may remove the other members, after disarming the alarm if there is
// one.
func vetoCorruptAlarm() veto { return veto{EtcdCorrupt, false, corruptAlarm} }

func vetoNoSpace() veto { return veto{EtcdNoSpace, false, noSpace} }

func corrupt(v View) (string, bool) {
	if text, alarm := corruptAlarm(v); alarm {
		return text, true
	}
	if !v.Cluster.Reachable || v.foreign() {
		return "", false
	}
	return v.dataDiffers()
}

func corruptAlarm(v View) (string, bool) {
	return fmt.Sprintf("%s: members hold different data, and it is unknown which is correct; until the alarm is "+
		"disarmed, %s", v.Cluster.Alarms, dataVetoEffect), v.Cluster.Reachable && !v.foreign() && !v.Cluster.Intact
}

// dataVetoEffect is the effect of a veto about the members' data.
const dataVetoEffect = "no host joins, no voter or standby is removed automatically and no healthy voter is taken " +
	"down"

// agrees reports whether there is no CORRUPT alarm, and no comparison has found that no majority has the same data.
func (c Cluster) agrees() bool { return c.Intact && !c.Divided }

// dataDiffers reports whether the comparison of the voters' data stops operations, although etcd has raised no alarm. A
// host that is about to join has rarely compared the data itself, so the reports of the voters' hosts count, too: a
// forged one can only stop operations.
func (v View) dataDiffers() (string, bool) {
	if text, differs := v.ownComparison(); differs {
		return text, true
	}
	for m := range v.Cluster.voters() {
		if h, present := v.hostOf(m); present && h.DataDiffers && !h.Own {
			return fmt.Sprintf("%s reports that no majority of the voters has the same data, or that the leader's "+
				"data differs: %s", h.Name, dataVetoEffect), true
		}
	}
	return "", false
}

// ownComparison is dataDiffers without the reports of other hosts.
func (v View) ownComparison() (string, bool) {
	if v.Cluster.Divided {
		return "the voters' data differs, and no majority agrees, so it is unknown which is correct: " + dataVetoEffect,
			true
	}
	for m := range v.Cluster.voters() {
		if m.Leader && m.Corrupt.Times > 0 {
			return fmt.Sprintf("%s leads, and its data differs from that of a majority of the voters: until another "+
				"voter leads, %s", m.label(), dataVetoEffect), true
		}
	}
	return "", false
}

// ReportsDifferentData reports whether this host's own comparison of the voters' data stops operations. The host
// publishes this.
func (v View) ReportsDifferentData() bool {
	_, differs := v.ownComparison()
	return v.Cluster.Reachable && !v.foreign() && differs
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
