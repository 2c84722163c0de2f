// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package policy

import "time"

// CountedWait is what a reason waits for, if that is counted: Now moves to Goal, from below or from above.
type CountedWait struct {
	Now, Goal float64
	Unit      CountUnit
}

// CountUnit is what is counted.
type CountUnit string

// What is counted.
const (
	CountEntries CountUnit = "entries" // of raft's log, that this host's member is behind the leader
	CountSeconds CountUnit = "seconds" // that it has been healthy without a break
)

// Progress returns the count in the text of one of this host's reasons; false if there is none. It decides nothing.
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

func secondsWait(so, goal time.Duration) CountedWait {
	return CountedWait{so.Seconds(), goal.Seconds(), CountSeconds}
}
