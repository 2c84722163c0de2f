// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/quorumd/quorumd/agent/control"
	"github.com/quorumd/quorumd/agent/observe"
	"github.com/quorumd/quorumd/health"
)

// raid is an external check that always reports CRITICAL.
type raid struct{ runs uint64 }

func (*raid) List(gates func(string) health.Gate) []health.ExternalCheck {
	return []health.ExternalCheck{{Name: "raid", Gates: gates("raid"), Interval: time.Minute}}
}

func (r *raid) Read(context.Context) []health.ExternalCheckReading {
	r.runs++
	return []health.ExternalCheckReading{{Name: "raid", Runs: r.runs, State: health.Slow, Text: "a leg is lost"}}
}

func TestAnExternalCheckIsAdvisoryUnlessConfiguredOtherwise(t *testing.T) {
	t.Parallel()
	for text, state := range map[string]string{"": "QUALIFYING", "checks: {joins: [raid]}\n": "SLOW"} {
		synctest.Test(t, func(t *testing.T) {
			f := newFleet(t, 0, observe.UsualPace())
			defer f.close()
			h := &fleetHost{f: f, name: "s1", files: map[string][]byte{}, externalChecks: &raid{}, config: text}
			f.hosts[h.name] = h
			h.boot("boot-s1")
			f.pass(time.Minute)
			s := h.agent.Status()
			found := false
			for _, x := range s.Health.Findings {
				found = found || x.Code == "CHECK_RAID" && x.Text == "a leg is lost"
			}
			if !found || (s.Health.State == "SLOW") != (state == "SLOW") {
				t.Errorf("%q: the health state is %s: %+v", text, s.Health.State, s.Health.Findings)
			}
			_, err := h.agent.Mute(t.Context(), control.MuteRequest{
				Code: "CHECK_RAID", Reason: "a test", For: control.Duration(time.Hour),
			}, "root")
			if (err == nil) != (text == "") {
				t.Errorf("%q: muted: %v", text, err)
			}
		})
	}
}
