// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"time"

	"github.com/quorumd/quorumd/agent/policy"
	"github.com/quorumd/quorumd/agent/record"
	"github.com/quorumd/quorumd/agent/round"
	"github.com/quorumd/quorumd/health"
)

// writesTook converts a record's write time from seconds, limited to an hour. A much larger number would overflow to a
// negative duration, and make the slowest disk appear the fastest.
func writesTook(seconds float64) time.Duration {
	return time.Duration(min(max(seconds, 0), time.Hour.Seconds()) * float64(time.Second))
}

// strained reports whether a voter's host was recently WARM or worse from a cause that several hosts may share. Only
// observations of this agent since its start count.
func (b *Builder) strained(r *round.Round, h record.Host, state health.State) bool {
	m, listed := r.Membership.Recognize(uint64(h.MemberID), h.PeerURL)
	if !listed || m.Learner {
		return false
	}
	if (state == health.Warm || policy.Unhealthy(state)) && health.Code(h.HealthText).Shared() {
		if b.strains == nil {
			b.strains = map[string]time.Duration{}
		}
		b.strains[h.ID] = r.At
	}
	at, was := b.strains[h.ID]
	return was && r.At-at <= policy.CommonSpan
}

// unhealthySince returns how long a host has reported that it is unhealthy, and how long it has reported that its disk
// hangs or has failed. Both durations start over if the agent on that host restarts.
func (b *Builder) unhealthySince(r *round.Round, h record.Host, state health.State) policy.UnhealthySince {
	since := func(what string, holds bool) time.Duration {
		name := carried + "host/" + h.ID + "/" + what
		if !holds {
			return b.since.truth(name, false, r.At, r.Number)
		}
		return max(1, b.since.Of(name, h.Instance, r.At, r.Number))
	}
	return policy.UnhealthySince{
		For:      since("unhealthy", policy.Unhealthy(state) && !h.Recovers),
		HangsFor: since("hangs", diskHangs(h, state)),
	}
}

// diskHangs reports whether a host reports that its disk hangs or has failed. An etcd that answers no request is no
// reason to replace its voter, because a defragmentation looks the same and ends by itself.
func diskHangs(h record.Host, state health.State) bool {
	return state == health.Failed || state == health.Stalled && health.Code(h.HealthText) != health.EtcdStalled
}

// writes builds the view of how long a host's writes take. The age counts from the moment at which this agent first saw
// the measurement, so that the clocks of two hosts are not compared.
func (b *Builder) writes(r *round.Round, h record.Host) policy.Writes {
	var w policy.Writes
	if h.WriteMean > 0 {
		at := h.Instance + h.WritesAt.String()
		w.Mean = writesTook(h.WriteMean)
		w.Age = b.since.Of(carried+"host/"+h.ID+"/writes", at, r.At, r.Number)
	}
	if figures := writeFigures(h); figures.P50 > 0 {
		w.WriteFigures = figures
		w.FiguresAge = b.since.Of(carried+"host/"+h.ID+"/figures", h.Instance+h.FiguresAt.String(), r.At, r.Number)
	}
	return w
}

// writeFigures returns a record's write figures, limited like its write time.
func writeFigures(h record.Host) policy.WriteFigures {
	return policy.WriteFigures{
		P50: writesTook(h.WriteP50), P90: writesTook(h.WriteP90), Tails: min(max(h.WriteTails, 0), mostTails),
	}
}

// mostTails bounds the number of slow episodes in the last two hours that a record may report.
const mostTails = 720
