// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package publish

import (
	"slices"

	"github.com/quorumd/quorumd/agent/control"
	"github.com/quorumd/quorumd/agent/round"
	"github.com/quorumd/quorumd/health"
)

// muteStatus shows a mute.
func muteStatus(m health.Mute) control.Mute {
	return control.Mute{
		Code: string(m.Code), State: m.State.String(), Reason: m.Reason, By: m.By, Since: m.Since, Until: m.Until,
	}
}

// mutesStatus shows what is muted in a round.
func mutesStatus(r *round.Round) (all []control.Mute) {
	for _, m := range r.Mutes {
		all = append(all, muteStatus(m))
	}
	return all
}

// muted tells whether a finding of a round is muted.
func muted(r *round.Round, code health.Code) bool {
	return slices.ContainsFunc(r.Mutes, func(m health.Mute) bool { return m.Code == code })
}

// tellMutes says which mutes have come to their end, each once.
func (p *Publisher) tellMutes(r *round.Round) {
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

// readMuted gives the codes that are muted, whether or not they are found.
func readMuted(_ *Metrics, r *round.Round, emit func(float64, ...string)) {
	if r == nil {
		return
	}
	for _, m := range r.Mutes {
		emit(1, string(m.Code))
	}
}
