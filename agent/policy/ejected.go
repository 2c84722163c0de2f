// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"fmt"
	"time"

	"github.com/quorumd/quorumd/agent/durationfmt"
	"github.com/quorumd/quorumd/health"
)

// Ejections is how often this host's member was replaced within the last 30 days. The host joins again only after a
// healthy period, which doubles each time: a host that comes and goes changes the membership ever less often.
type Ejections struct {
	Times   int
	Ago     time.Duration // since the last time, for texts: it compares clocks of two hosts
	HealthyFor time.Duration // since when it has been healthy without a break, as observed by this agent since then

	Member uint64 // the member that was ejected last
	// NotedFor is WellFor as recorded on this host's disk, and NotedAgo how long ago that was last recorded; 0 and 0 if
	// the disk records nothing.
	RecordedFor, RecordedAgo time.Duration
}

// noteStretch is how often the healthy period is recorded: an agent that returns sooner than it could miss a break
// continues it.
const healthyPeriodEvery = time.Minute

// notesClean reports whether to record again for how long an ejected host has been healthy: a restarted agent continues
// from that. If the host's health is unknown, the record stays and ages.
func recordsHealthyPeriod(v View) bool {
	t := v.Ejections
	switch {
	case !v.Cluster.Reachable || t.Times == 0 || roleOf(v) != RoleSpare:
		return false
	case t.HealthyFor == 0:
		return t.RecordedFor > 0 && v.Health.Known() && !v.Health.Healthy()
	}
	return t.RecordedAgo >= healthyPeriodEvery || (t.RecordedFor-t.HealthyFor).Abs() > healthyPeriodEvery/2
}

// longestClean is where the doubling of [Limits.CleanFor] ends.
const longestHealthyPeriod = 24 * time.Hour

// clean is how long this host must have been healthy before it joins again.
func (v View) requiredHealthyPeriod() time.Duration {
	d := v.Limits.CleanFor
	for i := 1; i < v.Ejections.Times && d < longestHealthyPeriod; i++ {
		d *= 2
	}
	return min(d, longestHealthyPeriod)
}

// Well reports whether a health state continues the healthy period that an ejected host waits for. Unknown does not.
func (h Health) Healthy() bool { return h.State == health.Warm || !h.blocks(health.Joins) }

// Judged reports whether a health state is known. An agent that has just started has none for a moment.
func (h Health) Known() bool { return h.State != health.Unknown && h.State != health.Qualifying }

// ejected keeps an ejected host from joining. It does not apply to a member or a joining host: a restarted
// agent no longer has the period in memory.
func ejected(v View) (string, bool) {
	left := v.requiredHealthyPeriod() - v.Ejections.HealthyFor
	if v.Ejections.Times == 0 || left <= 0 || roleOf(v) != RoleSpare {
		return "", false
	}
	often := "once"
	if v.Ejections.Times > 1 {
		often = fmt.Sprintf("%d times, last", v.Ejections.Times)
	}
	return fmt.Sprintf("%s was ejected %s %s ago: it rejoins after being healthy for %s, %s remain", v.Self.Name,
		often, durationfmt.Seconds(v.Ejections.Ago), durationfmt.Text(v.requiredHealthyPeriod()), durationfmt.Seconds(left)), true
}
