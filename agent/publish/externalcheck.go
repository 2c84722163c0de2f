// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package publish

import (
	"slices"

	"github.com/quorumd/quorumd/agent/round"
	"github.com/quorumd/quorumd/health"
)

// externalCheckGauges are the metrics of external checks.
func externalCheckGauges() []gauge {
	return []gauge{
		{
			"quorumd_external_check_state",
			"Last result of an external check: 0 OK, 1 WARNING, 2 CRITICAL, 3 UNKNOWN or none.",
			[]string{"check"},
			eachExternalCheck(func(p health.ExternalCheckReading, emit func(float64, ...string)) {
				emit(externalCheckState(p), p.Name)
			}),
		},
		{
			"quorumd_external_check_duration_seconds", "Duration of the last run of an external check.",
			[]string{"check"},
			eachExternalCheck(func(p health.ExternalCheckReading, emit func(float64, ...string)) {
				if p.Took > 0 {
					emit(p.Took.Seconds(), p.Name)
				}
			}),
		},
		{
			"quorumd_external_check_value", "Value that an external check reported, in its own unit.",
			[]string{"check", "label", "unit"},
			eachExternalCheck(func(p health.ExternalCheckReading, emit func(float64, ...string)) {
				for _, f := range p.Figures {
					emit(f.Value, p.Name, f.Label, f.Unit)
				}
			}),
		},
		{
			"quorumd_external_checks_hung", "External checks that were killed and have not exited.", nil,
			func(_ *Metrics, r *round.Round, emit func(float64, ...string)) {
				n := 0
				if r != nil {
					for _, p := range r.ExternalChecks {
						if p.Hung {
							n++
						}
					}
				}
				emit(float64(n))
			},
		},
	}
}

// eachExternalCheck returns a gauge's read function that emits the values of every external check that has run or
// cannot run.
func eachExternalCheck(read func(p health.ExternalCheckReading, emit func(float64, ...string)),
) func(*Metrics, *round.Round, func(float64, ...string)) {
	return func(_ *Metrics, r *round.Round, emit func(float64, ...string)) {
		if r == nil {
			return
		}
		for _, p := range r.ExternalChecks {
			if p.Runs > 0 || p.Absent != "" {
				read(p, emit)
			}
		}
	}
}

func externalCheckState(p health.ExternalCheckReading) float64 {
	if p.Absent != "" {
		return 3
	}
	return float64(slices.Index([]health.State{health.OK, health.Warm, health.Slow}, p.State))
}

// figuresOf returns the values measured by an external check.
func figuresOf(r *round.Round, check string) []health.ExternalCheckFigure {
	for _, p := range r.ExternalChecks {
		if health.ExternalCheckName(p.Name) == check {
			return p.Figures
		}
	}
	return nil
}
