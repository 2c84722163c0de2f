// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package policy

import "time"

// CountedWait is the measurable progress of a wait: Now approaches Goal, from below or from above.
type CountedWait struct {
	Now, Goal float64
	Unit      CountUnit
}

// CountUnit is the unit of a CountedWait.
type CountUnit string

// The units.
const (
	CountEntries CountUnit = "entries" // of the raft log that this host's member is behind the leader
	CountSeconds CountUnit = "seconds" // for which the member has met the condition without a break
)

// Progress returns the progress of the wait that a reason of this host describes; false if it cannot be counted. It is
// for display only.
func Progress(v View, code ReasonCode) (CountedWait, bool) {
	m, listed := v.member()
	if !listed || !m.Live {
		return CountedWait{}, false
	}
	behind := CountedWait{float64(m.Lag), float64(v.Limits.PromoteLag), CountEntries}
	switch code {
	case LearnerBehind:
		return behind, m.LagKnown
	case LearnerNotSteady:
		longer, caughtUp := secondsWait(m.LiveFor, v.Limits.PromoteStable), secondsWait(m.SteadyFor, v.Limits.SteadyLag)
		if longer.Goal-longer.Now < caughtUp.Goal-caughtUp.Now {
			longer = caughtUp
		}
		return longer, longer.Now < longer.Goal
	case Returning:
		switch {
		case m.Errors:
			return CountedWait{}, false
		case !steady(v, m):
			return behind, m.LagKnown
		}
		served := secondsWait(min(m.LiveFor, m.SteadyFor), v.Limits.ReturnStable)
		return served, served.Now < served.Goal
	}
	return CountedWait{}, false
}

func secondsWait(elapsed, goal time.Duration) CountedWait {
	return CountedWait{elapsed.Seconds(), goal.Seconds(), CountSeconds}
}
