// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package publish

import (
	"github.com/quorumd/quorumd/agent/round"
)

// requestGauges are the metrics of the agent's requests through the local member.
func requestGauges() []gauge {
	return []gauge{
		{
			"quorumd_etcd_request_seconds",
			"Duration of this agent's last answered request through the local member: read (linearizable), or write " +
				"(only on the leader; it changes nothing).",
			[]string{"request"},
			func(_ *Metrics, r *round.Round, emit func(float64, ...string)) {
				if r == nil {
					return
				}
				if seen := r.Assessment.Figures.Requests; seen.Read.Known {
					emit(seen.Read.Value, "read")
				}
				if seen := r.Assessment.Figures.Requests; seen.Write.Known {
					emit(seen.Write.Value, "write")
				}
			},
		},
		{
			"quorumd_etcd_request_hung_seconds",
			"How long requests through the local member have had no answer; 0 if the last one was answered.",
			nil,
			func(_ *Metrics, r *round.Round, emit func(float64, ...string)) {
				if r != nil && r.Assessment.Figures.Requests.Known {
					emit(r.Assessment.Figures.Requests.For.Seconds())
				}
			},
		},
	}
}
