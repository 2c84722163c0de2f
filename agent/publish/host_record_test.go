// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package publish

import (
	"testing"
	"time"

	"github.com/quorumd/quorumd/agent/diskrecord"
	"github.com/quorumd/quorumd/agent/policy"
	"github.com/quorumd/quorumd/agent/record"
	"github.com/quorumd/quorumd/agent/round"
	"github.com/quorumd/quorumd/health"
)

// A host that is about to stop its voter waits until every other voter has published its health state.
func TestOnlyAVoterWithACurrentHealthStateAnswersAHostAboutToStopItsOwn(t *testing.T) {
	t.Parallel()
	const callTimeout = time.Second
	for name, c := range map[string]struct {
		change  func(r *round.Round, p *hostRecord)
		answers bool
	}{
		"the host answers": {func(*round.Round, *hostRecord) {}, true},
		"no operation":     {func(r *round.Round, _ *hostRecord) { r.Op = nil }, false},
		"a host joins":     {func(r *round.Round, _ *hostRecord) { r.Op.Kind = policy.KindJoin }, false},
		"the host is not ready yet": {func(r *round.Round, _ *hostRecord) {
			r.Op.Phase = string(policy.PhaseBegun)
		}, false},
		"the host is down": {func(r *round.Round, _ *hostRecord) {
			r.Op.Phase = string(policy.PhaseDown)
		}, false},
		"the operation is its own": {func(r *round.Round, _ *hostRecord) { r.Op.Host = "id-n1" }, false},
		"the answering host is a standby": {func(r *round.Round, _ *hostRecord) {
			r.Decision.Role = policy.RoleStandby
		}, false},
		"the machine was suspended before the publication": {func(r *round.Round, _ *hostRecord) {
			r.At -= 2 * callTimeout
		}, false},
		"the host answered an earlier operation": {
			func(_ *round.Round, p *hostRecord) { p.written.Answers = 41 }, true,
		},
	} {
		p := &hostRecord{opt: Options{Now: func() time.Duration { return time.Minute }}, disk: diskrecord.New()}
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

func TestASlowHostPublishesHowItsDiskUsuallyHeals(t *testing.T) {
	t.Parallel()
	p := &hostRecord{opt: Options{Now: func() time.Duration { return time.Minute }}, disk: diskrecord.New()}
	r := &round.Round{At: time.Minute}
	r.Assessment = health.Assessment{
		State: health.Slow, Code: health.DiskFsyncSlow, HealsAfter: 12 * time.Minute, Defective: true, Recovers: true,
	}
	if h := p.record(r); h.HealsAfter != 720 || !h.Defective || !h.Recovers || h.Health != "SLOW" {
		t.Errorf("published: %+v", h)
	}
}
