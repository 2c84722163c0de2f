// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package publish

import (
	"fmt"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/quorumd/quorumd/agent/record"
	"github.com/quorumd/quorumd/agent/round"
	"github.com/quorumd/quorumd/disk"
	"github.com/quorumd/quorumd/health"
)

// series returns the values of the metrics with these names, each with its labels.
func series(t *testing.T, from prometheus.Gatherer, names ...string) map[string]float64 {
	t.Helper()
	families, err := from.Gather()
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]float64{}
	for _, f := range families {
		for _, name := range names {
			if f.GetName() != name {
				continue
			}
			for _, m := range f.GetMetric() {
				var labels []string
				for _, l := range m.GetLabel() {
					labels = append(labels, l.GetName()+"="+l.GetValue())
				}
				out[fmt.Sprint(name, labels)] = m.GetGauge().GetValue()
			}
		}
	}
	return out
}

func TestExternalChecksAndMutesAreMetricsAndShown(t *testing.T) {
	t.Parallel()
	m := NewMetrics(&disk.Probe{}, func() time.Duration { return 0 })
	registry := prometheus.NewRegistry()
	registry.MustRegister(m)
	names := []string{
		"quorumd_external_check_state", "quorumd_external_check_value", "quorumd_external_check_duration_seconds",
		"quorumd_external_checks_hung",
		"quorumd_finding_muted",
	}
	if got := fmt.Sprint(series(t, registry, names...)); got != "map[quorumd_external_checks_hung[]:0]" {
		t.Errorf("before the first round: %s", got)
	}
	limits := health.DefaultThresholds()
	limits.ExternalChecks = []health.ExternalCheck{{Name: "raid"}, {Name: "ntp"}, {Name: "new"}}
	r := &round.Round{ExternalChecks: []health.ExternalCheckReading{
		{
			Name: "raid", Runs: 2, State: health.Slow, Text: "a leg is lost", Took: time.Second,
			Figures: []health.ExternalCheckFigure{{Label: "legs", Unit: "c", Value: 1}},
		},
		{Name: "ntp", Absent: "it was killed but has not exited", Hung: true},
		{Name: "new"},
	}}
	r.Mutes = []health.Mute{{Code: "CHECK_RAID", State: health.Slow, By: "root"}}
	r.Assessment.Findings = []health.Finding{{Code: "CHECK_RAID"}, {Code: health.MemoryLow}}
	r.Assessment.Checks = []health.Standing{{Check: "external raid", State: health.Slow, Code: "CHECK_RAID"}}
	m.Round(r, 0)
	want := "map[quorumd_external_check_duration_seconds[check=raid]:1 " +
		"quorumd_external_check_state[check=ntp]:3 quorumd_external_check_state[check=raid]:2 " +
		"quorumd_external_check_value[check=raid label=legs unit=c]:1 quorumd_external_checks_hung[]:1 " +
		"quorumd_finding_muted[code=CHECK_RAID]:1]"
	if got := fmt.Sprint(series(t, registry, names...)); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}

	p := New(Options{Checks: health.Checks(limits), Wall: time.Now}, record.KeysFor("test"), nil)
	p.Show(r)
	for _, c := range p.Checks().Checks {
		if c.Name == "external raid" && (len(c.Figures) != 1 || c.Figures[0] != health.ExternalCheckFigure{
			Label: "legs", Unit: "c", Value: 1,
		} || c.Codes[0].Muted == nil || c.Codes[0].Muted.By != "root" || c.State != "SLOW") {
			t.Errorf("the check is %+v", c)
		}
	}
	if !muted(r, "CHECK_RAID") || muted(r, health.MemoryLow) {
		t.Errorf("muted are %+v", r.Mutes)
	}
}
