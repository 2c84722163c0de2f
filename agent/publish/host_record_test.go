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

func TestThePublishedP99ChangesRarelyAndNotForNoise(t *testing.T) {
	t.Parallel()
	const ms = time.Millisecond
	var p presence
	state := health.OK
	at := func(now, p99 time.Duration, want time.Duration) {
		t.Helper()
		if got := p.steadyP99(now, p99, state); got != want.Seconds() {
			t.Errorf("after %s a p99 of %s is published as %.4f s, want %s", now, p99, got, want)
		}
	}
	at(0, 0, 0)                                  // the p99 is not measured yet
	at(time.Second, 3900*time.Microsecond, 4*ms) // published at once
	at(time.Minute, 9*ms, 4*ms)                  // changed too recently
	at(time.Hour, 4900*time.Microsecond, 4*ms)   // within a quarter above its limit
	at(time.Hour, 1600*time.Microsecond, 4*ms)   // within a quarter below its lower limit
	at(time.Hour, 0, 4*ms)                       // the health state shows that it was not measured
	at(time.Hour, 5100*time.Microsecond, 8*ms)
	at(time.Hour+9*time.Minute, ms, 8*ms)
	at(time.Hour+10*time.Minute, ms, ms)
	state = health.Slow
	at(time.Hour+11*time.Minute, 600*ms, 1024*ms) // a new health state publishes it
	at(time.Hour+12*time.Minute, 300*ms, 1024*ms)
}

// A host that is about to stop its voter waits until every other voter has published its health state.
func TestOnlyAVoterWithACurrentHealthStateAnswersAHostAboutToStopItsOwn(t *testing.T) {
	t.Parallel()
	const callTimeout = time.Second
	for name, c := range map[string]struct {
		change  func(r *round.Round, p *presence)
		answers bool
	}{
		"it answers":   {func(*round.Round, *presence) {}, true},
		"no operation": {func(r *round.Round, _ *presence) { r.Op = nil }, false},
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
		"it slept before it published": {func(r *round.Round, _ *presence) { r.At -= 2 * callTimeout }, false},
		"it answered an earlier one":   {func(_ *round.Round, p *presence) { p.written.Answers = 41 }, true},
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
