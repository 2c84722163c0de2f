// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package publish

import (
	"slices"

	"github.com/quorumd/quorumd/agent/round"
	"github.com/quorumd/quorumd/health"
)

// muted reports whether a finding of a round is muted.
func muted(r *round.Round, code health.Code) bool {
	return slices.ContainsFunc(r.Mutes, func(m health.Mute) bool { return m.Code == code })
}

// reportEndedMutes writes each ended mute to the log and the history once.
func (p *Publisher) reportEndedMutes(r *round.Round) {
	for _, m := range r.MutesOver {
		if !slices.Contains(p.unmuted, m) {
			p.log.Info("mute ended", "code", m.Code, "why", m.Why)
			p.journal.Note(r.Revision, Entry{
				Kind: "mute", Code: "UNMUTED", Text: string(m.Code) + " is no longer muted: " + m.Why,
			})
		}
	}
	p.unmuted = r.MutesOver
}

// readMuted emits the muted codes, whether or not the findings are present.
func readMuted(_ *Metrics, r *round.Round, emit func(float64, ...string)) {
	if r == nil {
		return
	}
	for _, m := range r.Mutes {
		emit(1, string(m.Code))
	}
}
