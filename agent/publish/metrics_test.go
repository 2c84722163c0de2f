// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package publish

import (
	"fmt"
	"os"
	"regexp"
	"slices"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/quorumd/quorumd/agent/round"
	"github.com/quorumd/quorumd/disk"
	"github.com/quorumd/quorumd/health"
)

func TestEveryMetricThatAnAlertOrTheReadmeNamesExists(t *testing.T) {
	t.Parallel()
	m := NewMetrics(nil, func() time.Duration { return 0 })
	described := make(chan *prometheus.Desc, 100)
	m.Describe(described)
	close(described)
	var names []string
	for d := range described {
		names = append(names, regexp.MustCompile(`quorumd_[a-z_]+`).FindString(d.String()))
	}
	for _, path := range []string{"../../contrib/prometheus/quorumd.rules.yaml", "../../README.md"} {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		named := regexp.MustCompile(`quorumd_[a-z]+[a-z_]*[a-z]`).FindAllString(string(text), -1)
		if len(named) == 0 {
			t.Errorf("%s names no metric", path)
		}
		for _, name := range named {
			if !slices.Contains(names, name) {
				t.Errorf("%s names %s, which does not exist", path, name)
			}
		}
	}
}

func TestEveryFindingIsAMetricWhileItHoldsAndNotTheWorstAlone(t *testing.T) {
	t.Parallel()
	m := NewMetrics(&disk.Probe{}, func() time.Duration { return 0 })
	registry := prometheus.NewRegistry()
	registry.MustRegister(m)
	judge, err := health.New(health.DefaultThresholds())
	if err != nil {
		t.Fatal(err)
	}
	full := health.DiskReading{Alive: true, InFlight: 2 * time.Second, Free: 1, Total: 100 << 30}
	empty := health.DiskReading{Alive: true, InFlight: 2 * time.Second, Free: 99 << 30, Total: 100 << 30}
	if got := findings(t, registry); len(got) > 0 {
		t.Errorf("before anybody has looked, it shows %v", got)
	}
	for _, look := range []struct {
		disk health.DiskReading
		want []string
	}{
		{full, []string{"DISK_SPACE_LOW disk 1", "DISK_STALLED disk 1"}},
		{empty, []string{"DISK_STALLED disk 1"}},
	} {
		verdict, _ := judge.Observe(health.Input{Now: time.Hour, Member: true, Disk: look.disk})
		m.last.Store(&round.Round{Verdict: verdict})
		if got := findings(t, registry); !slices.Equal(got, look.want) {
			t.Errorf("it shows %v, want %v", got, look.want)
		}
	}
}

// findings gives what a scrape shows of them: code, component and value, in alphabetical order.
func findings(t *testing.T, registry *prometheus.Registry) []string {
	t.Helper()
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	for _, f := range families {
		if f.GetName() != "quorumd_finding" {
			continue
		}
		for _, one := range f.GetMetric() {
			line := ""
			for _, label := range one.GetLabel() { // code and component: they come in alphabetical order
				line += label.GetValue() + " "
			}
			all = append(all, fmt.Sprint(line, one.GetGauge().GetValue()))
		}
	}
	slices.Sort(all)
	return all
}
