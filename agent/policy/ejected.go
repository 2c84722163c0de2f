// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"fmt"
	"time"

	"github.com/quorumd/quorumd/agent/durationfmt"
	"github.com/quorumd/quorumd/health"
)

// Ejections says how often this host's member was replaced within the last 30 days. The host joins again only after a
// clean stretch, which doubles each time: one that comes and goes changes the membership ever more seldom.
type Ejections struct {
	Times   int
	Ago     time.Duration // since the last time, for people: it compares clocks of two hosts
	WellFor time.Duration // since when it has been well without a break, as this agent has seen it since then

	Member uint64 // that was taken out last
	// NotedFor is the same as WellFor as this host's disk says, and NotedAgo how long ago it was last known there to go
	// on; 0 and 0 when the disk says nothing.
	NotedFor, NotedAgo time.Duration
}

// noteStretch is how often it is noted that the stretch goes on: an agent that is back sooner than it could miss a
// break goes on with it.
const noteStretch = time.Minute

// notesClean tells whether the disk is to say anew for how long this host has been well, if it was taken out: an agent
// that starts anew goes on with that. Of a host of which nothing is known what stands there stays, and grows old.
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

// longestClean is where the doubling of [Limits.CleanFor] ends.
const longestClean = 24 * time.Hour

// clean is for how long this host must have been well before it joins again.
func (v View) clean() time.Duration {
	d := v.Limits.CleanFor
	for i := 1; i < v.Ejections.Times && d < longestClean; i++ {
		d *= 2
	}
	return min(d, longestClean)
}

// Well tells whether a verdict leaves the stretch clean that a host which was taken out waits for. Unknown is not well.
func (h Health) Well() bool { return h.State == health.Warm || !h.gates(health.Joins) }

// Judged tells whether there is a verdict. An agent that has just started has none for a moment.
func (h Health) Judged() bool { return h.State != health.Unknown && h.State != health.Qualifying }

// ejected keeps a host from joining that was taken out. Of a member, or of one that is joining, the stretch is over: an
// agent that starts anew has forgotten it.
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
