// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package publish

import (
	"testing"
	"time"

	"github.com/quorumd/quorumd/agent/policy"
	"github.com/quorumd/quorumd/agent/recovery"
	"github.com/quorumd/quorumd/agent/round"
	"github.com/quorumd/quorumd/disk"
	"github.com/quorumd/quorumd/health"
)

func TestAReasonThatQuotesTheHealthStateHasItsProgress(t *testing.T) {
	t.Parallel()
	limits := health.DefaultThresholds()
	for name, c := range map[string]struct {
		member  bool
		samples int
		want    policy.Progress
	}{
		"gathering samples": {true, 3, policy.Progress{
			Now: 3, Goal: float64(limits.Window), Unit: policy.CountSamples,
		}},
		"a qualification": {false, 6, policy.Progress{
			Now: 5, Goal: float64(limits.QualifySamples), Unit: policy.CountWrites,
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			judge, err := health.New(limits)
			if err != nil {
				t.Fatal(err)
			}
			look := health.Input{Now: time.Hour, Member: c.member, Disk: health.DiskReading{
				Alive: true, Free: 99 << 30, Total: 100 << 30,
			}}
			state, _ := judge.Observe(look)
			for range c.samples {
				look.Now += time.Second
				look.Disk.Samples = []disk.Sample{{Lane: disk.LaneWAL, End: look.Now, Latency: time.Millisecond}}
				state, _ = judge.Observe(look)
			}
			r := &round.Round{Assessment: state}
			got := progressOf(r, policy.Reason{Code: policy.NotQualified, Text: state.Text})
			if got == nil || *got != c.want {
				t.Errorf("%s: %+v, not %+v", state.Text, got, c.want)
			}
			if got := progressOf(r, policy.Reason{Code: policy.VoterNotLive, Text: "n2 is down"}); got != nil {
				t.Errorf("an unrelated reason has %+v", got)
			}
		})
	}
}

func TestTheSurvivorsCopyHasItsProgressInBytes(t *testing.T) {
	t.Parallel()
	r := &round.Round{Copy: recovery.Copy{Running: true, Done: 3, All: 7}}
	reason := policy.Reason{Code: policy.Recovering}
	want := policy.Progress{Now: 3, Goal: 7, Unit: policy.CountBytes}
	if got := progressOf(r, reason); got == nil || *got != want {
		t.Errorf("%+v", got)
	}
	r.Copy.Running = false
	if got := progressOf(r, reason); got != nil {
		t.Errorf("a copy that has ended: %+v", got)
	}
}
