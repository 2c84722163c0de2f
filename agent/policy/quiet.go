// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"slices"

	"github.com/quorumd/quorumd/health"
)

// QuietRounds is how many rounds of the loop share one status request to the members while the cluster is quiet. A host
// still reads the records in each round, and asks the members at once if anything has changed.
const QuietRounds = 2

// activity is a condition in which the cluster is not quiet, even if this host has nothing to do.
type activity struct {
	name  string
	holds func(View) bool
}

// activities returns all conditions in which the cluster is not quiet. In a quiet cluster the members' answers of the
// previous round are as good as new ones, except that a silent member is noticed one round later.
func activities() []activity {
	return []activity{
		{"this host is unhealthy", func(v View) bool { return v.Health.State != health.OK }},
		{"this host has a request", func(v View) bool { return v.Asked != nil || v.Removal != nil }},
		{"the lock is held", func(v View) bool { return v.Lock.Held }},
		{"an operation is in flight", func(v View) bool { return v.Op != nil }},
		{"a rollout runs", func(v View) bool { return v.Rollout != nil && v.Rollout.Runs }},
		{"a record cannot be read", func(v View) bool { return len(v.Unreadable) > 0 }},
		{"the members have changed", func(v View) bool { return v.Cluster.StableFor < v.Limits.Settle }},
		{"a member is unhealthy or recovered only recently", func(v View) bool {
			return slices.ContainsFunc(v.Cluster.Members, func(m Member) bool { return unsettled(v, m) })
		}},
		{"a host waits", func(v View) bool {
			return slices.ContainsFunc(v.Hosts, func(h Host) bool { return h.Wants != "" || h.InOperation })
		}},
		{"a host cannot reach a member", func(v View) bool {
			return slices.ContainsFunc(v.Hosts, func(h Host) bool {
				unreached := func(s Sight) bool { return s.Lost || s.Unsure }
				return h.MemberLostFor > 0 || slices.ContainsFunc(h.Sees, unreached)
			})
		}},
	}
}

// unsettled reports whether a member is not healthy, or has become so only recently.
func unsettled(v View, m Member) bool {
	return !m.Live || m.Errors || m.LiveFor < v.Limits.Settle || !m.LagKnown || m.BehindFor > 0 || m.AgentGoneFor > 0
}

// quiet reports whether this host is a member's, has nothing to do, and the cluster has no activity.
func quiet(v View, d Decision) bool {
	atRest := len(d.Reasons) > 0 && d.Reasons[0].Code == Idle
	if !atRest || d.Step.Kind != StepNone || d.Again != 0 || d.Role != RoleVoter && d.Role != RoleStandby ||
		d.Notes.Queue.News || d.Notes.Backup.Take || d.Notes.RestoreTest.Run {
		return false
	}
	return !slices.ContainsFunc(activities(), func(u activity) bool { return u.holds(v) })
}
