// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"fmt"
	"time"

	"github.com/quorumd/quorumd/agent/durationfmt"
	"github.com/quorumd/quorumd/health"
)

// Ejections describes how often this host's member was replaced within the last 30 days. The host joins again only
// after a healthy period, which doubles each time: a host that keeps failing changes the membership less and less
// often.
type Ejections struct {
	Times   int
	Ago     time.Duration // since the last ejection, for texts only: it compares the clocks of two hosts
	WellFor time.Duration // how long it has been healthy since then without a break, as observed by this agent

	Member uint64 // the member that was ejected last
	// NotedFor is WellFor as recorded on this host's disk, and NotedAgo the time since it was recorded; both are 0 if
	// nothing is.
	NotedFor, NotedAgo time.Duration
}

// noteStretch is how often the healthy period is recorded. An agent that restarts soon after continues the period.
const noteStretch = time.Minute

// notesClean reports whether to record the healthy period of an ejected host again, so that a restarted agent continues
// it. If the host's health is unknown, the record stays and ages.
func notesClean(v View) bool {
	t := v.Ejections
	switch {
	case !v.Cluster.Reachable || t.Times == 0 || roleOf(v) != RoleSpare:
		return false
	case t.WellFor == 0:
		return t.NotedFor > 0 && v.Health.Judged() && !v.Health.Well()
	}
	return t.NotedAgo >= noteStretch || (t.NotedFor-t.WellFor).Abs() > noteStretch/2
}

// longestClean limits the doubled [Limits.CleanFor].
const longestClean = 24 * time.Hour

// clean returns how long this host must have been healthy before it joins again.
func (v View) clean() time.Duration {
	d := v.Limits.CleanFor
	for i := 1; i < v.Ejections.Times && d < longestClean; i++ {
		d *= 2
	}
	return min(d, longestClean)
}

// Well reports whether a health state continues the healthy period of an ejected host. An unknown state does not.
func (h Health) Well() bool { return h.State == health.Warm || !h.gates(health.Joins) }

// Judged reports whether the health state is known. It is not for a moment after an agent starts.
func (h Health) Judged() bool { return h.State != health.Unknown && h.State != health.Qualifying }

// ejected reports whether this host was ejected and must stay healthy for longer before it joins. It does not apply to
// a member or a joining host, whose agent may have restarted and lost the period.
func ejected(v View) (string, bool) {
	left := v.clean() - v.Ejections.WellFor
	if v.Ejections.Times == 0 || left <= 0 || roleOf(v) != RoleSpare {
		return "", false
	}
	often := "once"
	if v.Ejections.Times > 1 {
		often = fmt.Sprintf("%d times, last", v.Ejections.Times)
	}
	return fmt.Sprintf("%s was ejected %s %s ago: it rejoins after being healthy for %s, %s remain", v.Self.Name,
		often, durationfmt.Seconds(v.Ejections.Ago), durationfmt.Text(v.clean()), durationfmt.Seconds(left)), true
}
