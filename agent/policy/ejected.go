// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"fmt"
	"time"

	"github.com/quorumd/quorumd/health"
)

// TakenOut says how often this host's member was replaced within the last 30 days. The host joins again only after a
// clean stretch, which doubles each time: one that comes and goes changes the membership ever more seldom.
type TakenOut struct {
	Times   int
	Ago     time.Duration // since the last time, for people: it compares clocks of two hosts
	WellFor time.Duration // since when it has been well without a break, as this agent has seen it since then
}

// longestClean is where the doubling of [Limits.CleanFor] ends.
const longestClean = 24 * time.Hour

// clean is for how long this host must have been well before it joins again.
func (v View) clean() time.Duration {
	d := v.Limits.CleanFor
	for i := 1; i < v.TakenOut.Times && d < longestClean; i++ {
		d *= 2
	}
	return min(d, longestClean)
}

// Well tells whether a verdict leaves the stretch clean that a host which was taken out waits for. Unknown is not well.
func (h Health) Well() bool { return h.State == health.Warm || !h.gates(health.Joins) }

// ejected keeps a host from joining that was taken out. Of a member, or of one that is joining, the stretch is over: an
// agent that starts anew has forgotten it.
func ejected(v View) (string, bool) {
	left := v.clean() - v.TakenOut.WellFor
	if v.TakenOut.Times == 0 || left <= 0 || roleOf(v) != RoleSpare {
		return "", false
	}
	often := "once"
	if v.TakenOut.Times > 1 {
		often = fmt.Sprintf("%d times, last", v.TakenOut.Times)
	}
	return fmt.Sprintf("%s was taken out %s %s ago: it joins when it has been well for %s, %s remain", v.Self.Name,
		often, v.TakenOut.Ago.Round(time.Second), v.clean(), left.Round(time.Second)), true
}
