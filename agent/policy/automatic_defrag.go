// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"fmt"
	"time"
)

// If the configuration allows it, an agent requests the defragmentation of its own member. Such a request waits in the
// same queue as an operator's, under the same vetoes and the same lock. The agent makes the request only when the
// operation could begin at once, so that the request delays no other. If the trigger no longer applies before the
// operation has begun, the agent withdraws the request.

const (
	// defragSpare is the free space, in bytes, that a defragmentation needs in addition to the data in use.
	defragSpare = 64 << 20
	// defragDueFor is for how long a defragmentation must have been due before the agent requests it. Because of this
	// delay, a single odd answer from a member takes no host down.
	defragDueFor = time.Minute
	// leaderDefragDueFor replaces defragDueFor for a leader while another live voter's database is worth a
	// defragmentation as well. If the leader goes last, leadership is transferred only once.
	leaderDefragDueFor = 15 * time.Minute
	// defragEvery is the minimum time between the end of a request for a defragmentation and the agent's next request;
	// defragFullEvery replaces it close to the quota. Both apply however the request ended, so that the agent neither
	// repeats a failed defragmentation at once nor overrules an operator who has cancelled one.
	defragEvery     = 24 * time.Hour
	defragFullEvery = time.Hour
	// roomyPercent is the percentage of the quota below which the data in use must be for a defragmentation close to
	// the quota. Otherwise the next one would soon be due.
	roomyPercent = 85
)

// AutomaticDefrag holds the conditions, apart from the sizes, under which this host requests the defragmentation of its
// own member.
type AutomaticDefrag struct {
	Windows bool // the configuration allows defragmentations in maintenance windows
	// Shut is why the windows do not allow a defragmentation now: none is open, or there is a blackout. Empty if they
	// do.
	Shut   string
	Ended  time.Duration // since the last request for a defragmentation of this host ended, or Never
	DueFor time.Duration // for how long a defragmentation has been due: see DefragDue
}

// defragTrigger declares a situation in which an agent requests the defragmentation of its own member.
type defragTrigger struct {
	allowed func(v View) bool     // the configuration and the time allow a defragmentation
	worth   func(d Database) bool // a defragmentation frees enough space
	every   time.Duration         // the minimum time since the last request ended
	text    string
}

// defragTriggers returns the triggers in order of precedence. Close to the quota, the restart of one member costs
// less than the NOSPACE alarm would.
func defragTriggers() []defragTrigger {
	return []defragTrigger{
		{
			allowed: func(v View) bool { return v.Space.Automatic.Windows || v.Space.Remediate },
			worth: func(d Database) bool {
				return d.Over() && d.Free() >= fullBytes && !d.exceeds(d.InUse, roomyPercent)
			},
			every: defragFullEvery, text: fmt.Sprintf("the database has reached %d %% of its quota", overPercent),
		},
		{
			allowed: func(v View) bool {
				running := v.Rollout != nil && v.Rollout.Runs // the rollout goes first
				return v.Space.Automatic.Windows && v.Space.Automatic.Shut == "" && !running
			},
			worth: Database.WorthDefrag,
			every: defragEvery, text: "in a maintenance window",
		},
	}
}

// defragTrigger returns the first trigger to defragment this host's member, if the last request ended long enough ago
// for it. If the data in use is close to the quota, there is none: only deleted keys or a larger quota would help.
// There is none either if the installed etcd has a different minor version than the running one, because the restart
// would be an upgrade.
func (v View) defragTrigger(ended time.Duration) (o defragTrigger, found bool) {
	m, listed := v.member()
	d := m.Database
	switch {
	case v.Self.Mode != Manage || !v.Cluster.Reachable || v.foreign() || !v.Cluster.Roomy || !v.Cluster.agrees(),
		!listed || !m.Live || d.InUse <= 0 || d.InUse > d.Size || d.exceeds(d.InUse, overPercent),
		!v.Self.Etcd.Known() || v.Self.Etcd.minor() != m.Version.minor(),
		!v.Data.FreeKnown || v.Data.Free < uint64(d.InUse)+defragSpare:
		return defragTrigger{}, false
	}
	for _, o := range defragTriggers() {
		if o.allowed(v) && o.worth(d) && ended >= o.every {
			return o, true
		}
	}
	return defragTrigger{}, false
}

// DefragDue reports whether a defragmentation of this host's member is due and this host has no request.
func DefragDue(v View) bool {
	_, due := v.defragTrigger(v.Space.Automatic.Ended)
	return due && v.Asked == nil
}

// automaticDefrag requests the defragmentation of this host's member if it is due and could begin now.
func automaticDefrag(v View) RequestNote {
	o, due := v.defragTrigger(v.Space.Automatic.Ended)
	if !due || v.Space.Automatic.DueFor < v.defragPatience() || !v.HostsFresh || v.Pause != nil ||
		v.cannotRead(RecordPause) || v.cannotRead(RecordRollout) || v.cannotRead(RecordLock) {
		return RequestNote{}
	}
	request := Request{Work: WorkDefrag, Automatic: true}
	if AgainstRequest(v, false, request, false) != nil {
		return RequestNote{}
	}
	asked := request.Asked()
	m, _ := v.member()
	if v.Asked = &asked; len(against(v, cycleVetoes())) > 0 {
		return RequestNote{}
	}
	return RequestNote{Change: RequestDefrag, Text: o.text + ": " + m.Database.FreeText()}
}

// defragPatience returns for how long a defragmentation of this host's member must have been due.
func (v View) defragPatience() time.Duration {
	if own, _ := v.member(); own.Leader {
		for m := range v.Cluster.voters() {
			if m.ID != own.ID && m.Live && m.Database.WorthDefrag() {
				return leaderDefragDueFor
			}
		}
	}
	return defragDueFor
}

// withdrawn reports whether the operation for this agent's own request for a defragmentation has not begun, and no
// trigger applies any longer. In that case the host is not taken down, even before its disk records that the request is
// withdrawn.
func withdrawn(v View) bool {
	if v.Asked == nil || !v.Asked.Automatic || !notBegun(v) {
		return false
	}
	_, found := v.defragTrigger(Never)
	return !found
}

// quotasDiffer reports whether live voters have different quotas. The smallest quota limits the cluster.
func quotasDiffer(v View) (string, bool) {
	var least, most Member
	for m := range v.Cluster.voters() {
		quota := m.Database.Quota
		if !m.Live || quota <= 0 {
			continue
		}
		if least.ID == 0 || quota < least.Database.Quota {
			least = m
		}
		if quota > most.Database.Quota {
			most = m
		}
	}
	if least.Database.Quota == most.Database.Quota {
		return "", false
	}
	return fmt.Sprintf("the quota of voter %s is %s, and that of voter %s is %s: the smaller one limits the cluster",
		least.label(), MiB(least.Database.Quota), most.label(), MiB(most.Database.Quota)), true
}
