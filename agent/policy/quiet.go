// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"slices"

	"github.com/quorumd/quorumd/health"
)

// QuietRounds is in how many rounds of the loop a host asks the members who they are and how, once, while all is quiet.
// It reads the records in each round, and asks the members at once when they say anything else.
const QuietRounds = 2

// unrest is something by which a cluster is not quiet, though nothing is to do.
type unrest struct {
	name  string
	holds func(View) bool
}

// unrests are all that there are. Where none holds, what members have answered a round ago says no less than what they
// would answer now, until one of them falls silent: that is seen a round later.
func unrests() []unrest {
	return []unrest{
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
			return slices.ContainsFunc(v.Hosts, func(h Host) bool { return h.Wants != "" || h.Turn })
		}},
		{"a host cannot reach a member", func(v View) bool {
			return slices.ContainsFunc(v.Hosts, func(h Host) bool {
				misses := func(s Sight) bool { return s.Lost || s.Unsure }
				return h.MemberLostFor > 0 || slices.ContainsFunc(h.Sees, misses)
			})
		}},
	}
}

// unsettled tells of a member that is not as it should be, or has only just become so.
func unsettled(v View, m Member) bool {
	return !m.Live || m.Errors || m.LiveFor < v.Limits.Settle || !m.LagKnown || m.BehindFor > 0 || m.AgentGoneFor > 0
}

// quiet tells whether a member's host has decided that nothing is to do, in a cluster in which nothing is going on.
func quiet(v View, d Decision) bool {
	atRest := len(d.Reasons) > 0 && d.Reasons[0].Code == AtRest
	if !atRest || d.Step.Kind != StepNone || d.Again != 0 || d.Role != RoleVoter && d.Role != RoleStandby ||
		d.Notes.Queue.News || d.Notes.Backup.Take || d.Notes.Drill.Run {
		return false
	}
	return !slices.ContainsFunc(unrests(), func(u unrest) bool { return u.holds(v) })
}
