// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package publish

import (
	"github.com/quorumd/quorumd/agent/control"
	"github.com/quorumd/quorumd/agent/policy"
	"github.com/quorumd/quorumd/agent/round"
)

// progressOf returns a reason's progress, or nil if it has none. A reason that quotes the health state's text has the
// health state's progress.
func progressOf(r *round.Round, reason policy.Reason) *control.Progress {
	if c, counted := policy.Progress(r.View, reason.Code); counted {
		return &control.Progress{Now: c.Now, Goal: c.Goal, Unit: string(c.Unit)}
	}
	switch f := r.Assessment.Figures; {
	case reason.Code == policy.Recovering && r.Copy.Running && r.Copy.All > 0:
		return EncodedBytes(r.Copy.Done, r.Copy.All)
	case reason.Text != r.Assessment.Text:
	case f.QualifyNeed > 0:
		return &control.Progress{Now: float64(f.QualifyDone), Goal: float64(f.QualifyNeed), Unit: control.UnitWrites}
	case f.GatherNeed > 0:
		return &control.Progress{Now: float64(f.GatherDone), Goal: float64(f.GatherNeed), Unit: control.UnitSamples}
	}
	return nil
}

// EncodedBytes returns the progress of a job that copies or reads bytes.
func EncodedBytes(done, all int64) *control.Progress {
	return &control.Progress{Now: float64(done), Goal: float64(all), Unit: control.UnitBytes}
}
