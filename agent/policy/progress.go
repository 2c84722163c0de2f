// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package policy

import "time"

// Progress is a number that rises or falls to a goal, such as bytes done by a job. Two readings give the remaining time.
type Progress struct {
	Now  float64   `json:"now"`
	Goal float64   `json:"goal"` // may change while it is being determined
	Unit CountUnit `json:"unit"` // entries, seconds, writes, samples or bytes
}

// CountUnit is the unit of a Progress.
type CountUnit string

// The units.
const (
	CountEntries CountUnit = "entries" // of the raft log that this host's member is behind the leader
	CountSeconds CountUnit = "seconds" // for which the member has met the condition without a break
	CountWrites  CountUnit = "writes"  // measured in a qualification
	CountSamples CountUnit = "samples"
	CountBytes   CountUnit = "bytes"
)

// ProgressOf returns the progress of the wait that a reason of this host describes; false if it cannot be counted. It
// is for display only.
func ProgressOf(v View, code ReasonCode) (Progress, bool) {
	m, listed := v.member()
	if !listed || !m.Live {
		return Progress{}, false
	}
	behind := Progress{float64(m.Lag), float64(v.Limits.PromoteLag), CountEntries}
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
			return Progress{}, false
		case !steady(v, m):
			return behind, m.LagKnown
		}
		served := secondsWait(min(m.LiveFor, m.SteadyFor), v.Limits.ReturnStable)
		return served, served.Now < served.Goal
	}
	return Progress{}, false
}

func secondsWait(elapsed, goal time.Duration) Progress {
	return Progress{elapsed.Seconds(), goal.Seconds(), CountSeconds}
}
