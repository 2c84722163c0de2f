// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package publish

import (
	"github.com/quorumd/quorumd/agent/policy"
	"github.com/quorumd/quorumd/agent/round"
)

// progressOf returns a reason's progress, or nil if it has none. A reason that quotes the health state's text has the
// health state's progress.
func progressOf(r *round.Round, reason policy.Reason) *policy.Progress {
	if c, counted := policy.ProgressOf(r.View, reason.Code); counted {
		return &c
	}
	switch f := r.Assessment.Figures; {
	case reason.Code == policy.Recovering && r.Copy.Running && r.Copy.All > 0:
		return EncodedBytes(r.Copy.Done, r.Copy.All)
	case reason.Text != r.Assessment.Text:
	case f.QualifyNeed > 0:
		return &policy.Progress{Now: float64(f.QualifyDone), Goal: float64(f.QualifyNeed), Unit: policy.CountWrites}
	case f.GatherNeed > 0:
		return &policy.Progress{Now: float64(f.GatherDone), Goal: float64(f.GatherNeed), Unit: policy.CountSamples}
	}
	return nil
}

// EncodedBytes returns the progress of a job that copies or reads bytes.
func EncodedBytes(done, all int64) *policy.Progress {
	return &policy.Progress{Now: float64(done), Goal: float64(all), Unit: policy.CountBytes}
}
