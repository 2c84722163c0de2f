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
	Times      int
	Ago        time.Duration // since the last ejection, for texts only: it compares the clocks of two hosts
	HealthyFor time.Duration // how long it has been healthy since then without a break, as observed by this agent

	Member uint64 // the member that was ejected last
	// RecordedFor is WellFor as recorded on this host's disk, and NotedAgo the time since it was recorded; both are 0
	// if nothing is.
	RecordedFor, RecordedAgo time.Duration
}

// healthyPeriodEvery is how often the healthy period is recorded. An agent that restarts soon after continues the
// period.
const healthyPeriodEvery = time.Minute

// recordsHealthyPeriod reports whether to record the healthy period of an ejected host again, so that a restarted agent
// continues it. If the host's health is unknown, the record stays and ages.
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

// longestHealthyPeriod limits the doubled [Limits.CleanFor].
const longestHealthyPeriod = 24 * time.Hour

// requiredHealthyPeriod returns how long this host must have been healthy before it joins again.
func (v View) requiredHealthyPeriod() time.Duration {
	d := v.Limits.CleanFor
	for i := 1; i < v.Ejections.Times && d < longestHealthyPeriod; i++ {
		d *= 2
	}
	return min(d, longestHealthyPeriod)
}

// Healthy reports whether a health state continues the healthy period of an ejected host. An unknown state does not.
func (h Health) Healthy() bool { return h.State == health.Warm || !h.blocks(health.Joins) }

// Known reports whether the health state is known. It is not for a moment after an agent starts.
func (h Health) Known() bool { return h.State != health.Unknown && h.State != health.Qualifying }

// ejected reports whether this host was ejected and must stay healthy for longer before it joins. It does not apply to
// a member or a joining host, whose agent may have restarted and lost the period.
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
		often, durationfmt.Seconds(v.Ejections.Ago), durationfmt.Text(v.requiredHealthyPeriod()),
		durationfmt.Seconds(left)), true
}
