// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"context"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/quorumd/quorumd/agent/control"
	"github.com/quorumd/quorumd/agent/observe"
	"github.com/quorumd/quorumd/health"
)

func TestHangingEtcdMetricsDelayNothingAndCountWhenTheyArrive(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t, 0, observe.UsualPace())
		defer f.close()
		var asked, endless atomic.Int64
		var answers atomic.Bool
		h := f.hosts["v2"]
		h.end()
		h.metrics = func(ctx context.Context) health.EtcdReading {
			asked.Add(1)
			if !answers.Load() {
				<-ctx.Done()
				endless.Add(1)
				return health.NotAvailable[health.EtcdReading]("etcd timed out")
			}
			full := health.Figure{Value: 1 << 30, Known: true}
			return health.EtcdReading{HasLeader: full, DBSize: full, DBInUse: full, Quota: full}
		}
		h.boot("boot-v2")
		before := h.agent.Status()
		f.pass(5 * time.Minute)
		now := h.agent.Status()
		if now.Loop.Rounds < before.Loop.Rounds+60 || asked.Load() < 30 || asked.Load() > 60 ||
			endless.Load() < asked.Load()-1 {
			t.Errorf("in 5 min %d rounds, asked %d times, which ended %d times", now.Loop.Rounds-before.Loop.Rounds,
				asked.Load(), endless.Load())
		}
		if why := absent(now, "etcd-quota"); why != "etcd timed out" {
			t.Errorf("not available: %q", why)
		}
		if why := absent(now, "etcd-alarm"); why != "" {
			t.Errorf("the data of the members' statuses are not available: %q", why)
		}
		answers.Store(true)
		f.pass(time.Minute)
		if s := h.agent.Status(); !finds(s, health.EtcdQuotaLow) || s.Health.State == "FAILED" {
			t.Errorf("%s, the findings are %+v", s.Health.State, s.Health.Findings)
		}
		if err := h.Stop(t.Context()); err != nil {
			t.Fatal(err)
		}
		f.pass(time.Minute)
		was := asked.Load()
		f.pass(5 * time.Minute)
		if s := h.agent.Status(); asked.Load() != was || absent(s, "etcd-quota") != "etcd does not run here" ||
			finds(s, health.EtcdQuotaLow) {
			t.Errorf("a stopped etcd is queried %d times, the findings are %+v", asked.Load()-was, s.Health.Findings)
		}
	})
}

// absent returns why a check is not available, or "" if it is available.
func absent(s control.Status, check string) string {
	for _, a := range s.Health.NotAvailable {
		if a.Check == check {
			return a.Why
		}
	}
	return ""
}

func finds(s control.Status, code health.Code) bool {
	return slices.ContainsFunc(s.Health.Findings, func(f control.Finding) bool { return f.Code == string(code) })
}
