// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package publish

import (
	"testing"
	"time"

	"github.com/quorumd/quorumd/agent/policy"
	"github.com/quorumd/quorumd/agent/record"
	"github.com/quorumd/quorumd/agent/round"
	"github.com/quorumd/quorumd/health"
)

func TestThePublishedP99ChangesSeldomAndNotForNoise(t *testing.T) {
	t.Parallel()
	const ms = time.Millisecond
	var p presence
	verdict := health.OK
	at := func(now, p99 time.Duration, want time.Duration) {
		t.Helper()
		if got := p.steadyP99(now, p99, verdict); got != want.Seconds() {
			t.Errorf("after %s a p99 of %s is published as %.4f s, want %s", now, p99, got, want)
		}
	}
	at(0, 0, 0)                                  // not measured yet
	at(time.Second, 3900*time.Microsecond, 4*ms) // known at once
	at(time.Minute, 9*ms, 4*ms)                  // not so soon again
	at(time.Hour, 4900*time.Microsecond, 4*ms)   // within a quarter beyond its bound
	at(time.Hour, 1600*time.Microsecond, 4*ms)   // and below
	at(time.Hour, 0, 4*ms)                       // that it was not measured is told by the verdict
	at(time.Hour, 5100*time.Microsecond, 8*ms)
	at(time.Hour+9*time.Minute, ms, 8*ms)
	at(time.Hour+10*time.Minute, ms, ms)
	verdict = health.Slow
	at(time.Hour+11*time.Minute, 600*ms, 1024*ms) // that the verdict is another one shows why
	at(time.Hour+12*time.Minute, 300*ms, 1024*ms)
}

// A host that is about to stop its voter asks every other voter's how it is.
func TestOnlyAVoterWhoseVerdictIsNewAnswersAHostThatIsAboutToStopItsOwn(t *testing.T) {
	t.Parallel()
	const callTimeout = time.Second
	for name, c := range map[string]struct {
		change  func(r *round.Round, p *presence)
		answers bool
	}{
		"it does":      {func(*round.Round, *presence) {}, true},
		"nobody asks":  {func(r *round.Round, _ *presence) { r.Op = nil }, false},
		"a host joins": {func(r *round.Round, _ *presence) { r.Op.Kind = policy.KindJoin }, false},
		"the host is not ready yet": {func(r *round.Round, _ *presence) {
			r.Op.Phase = string(policy.PhaseBegun)
		}, false},
		"the host is down": {func(r *round.Round, _ *presence) {
			r.Op.Phase = string(policy.PhaseDown)
		}, false},
		"it is the host itself": {func(r *round.Round, _ *presence) { r.Op.Host = "id-n1" }, false},
		"it is a standby": {func(r *round.Round, _ *presence) {
			r.Decision.Role = policy.RoleStandby
		}, false},
		"it slept between look and word":    {func(r *round.Round, _ *presence) { r.At -= 2 * callTimeout }, false},
		"it was asked before, and has told": {func(_ *round.Round, p *presence) { p.written.Answers = 41 }, true},
	} {
		p := &presence{opt: Options{Now: func() time.Duration { return time.Minute }}}
		p.opt.Config.Host.ID, p.opt.Config.Timing.CallTimeout = "id-n1", callTimeout
		r := &round.Round{At: time.Minute}
		r.Op, r.OpAt = &record.Op{Kind: policy.KindCycle, Host: "id-n2", Phase: string(policy.PhaseReady)}, 42
		r.Decision.Role = policy.RoleVoter
		c.change(r, p)
		if r.View.Self.ID = "id-n1"; r.Op != nil {
			r.View.Op = &policy.Op{Kind: r.Op.Kind, Host: r.Op.Host, Phase: policy.OpPhase(r.Op.Phase)}
		}
		want := p.written.Answers
		if c.answers {
			want = 42
		}
		if got := p.record(r).Answers; got != want {
			t.Errorf("%s: it answers %d, want %d", name, got, want)
		}
	}
}
