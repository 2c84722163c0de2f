// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package publish

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/quorumd/quorumd/agent/policy"
	"github.com/quorumd/quorumd/agent/proxy"
	"github.com/quorumd/quorumd/agent/record"
	"github.com/quorumd/quorumd/agent/round"
	"github.com/quorumd/quorumd/disk"
	"github.com/quorumd/quorumd/health"
)

func TestEveryMetricThatAnAlertOrADocumentNamesExists(t *testing.T) {
	t.Parallel()
	m := NewMetrics(nil, func() time.Duration { return 0 })
	described := make(chan *prometheus.Desc, 100)
	m.Describe(described)
	(&proxy.Proxy{}).Metrics().Describe(described)
	close(described)
	var names []string
	for d := range described {
		names = append(names, regexp.MustCompile(`quorumd_[a-z_]+`).FindString(d.String()))
	}
	pages, err := filepath.Glob("../../contrib/docs/*.md")
	if err != nil || len(pages) == 0 {
		t.Fatalf("%d pages: %v", len(pages), err)
	}
	many := []string{"../../contrib/prometheus/quorumd.rules.yaml", "../../contrib/docs/monitoring.md"}
	for _, path := range append([]string{many[0], "../../README.md"}, pages...) {
		if filepath.Base(path) == "metrics.md" {
			continue // composed of all registered collectors
		}
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		named := regexp.MustCompile(`quorumd_[a-z]+[a-z_]*[a-z]`).FindAllString(string(text), -1)
		if len(named) == 0 && slices.Contains(many, path) {
			t.Errorf("%s names no metric", path)
		}
		for _, name := range named {
			name = strings.TrimSuffix(name, "_bucket") // of a histogram
			if !slices.Contains(names, name) {
				t.Errorf("%s names %s, which does not exist", path, name)
			}
		}
	}
}

func TestEveryFindingIsAMetricAndNotOnlyTheWorst(t *testing.T) {
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
		assessment, _ := judge.Observe(health.Input{Now: time.Hour, Member: true, Disk: look.disk})
		m.last.Store(&round.Round{Assessment: assessment})
		if got := findings(t, registry); !slices.Equal(got, look.want) {
			t.Errorf("the findings are %v, want %v", got, look.want)
		}
	}
}

func TestReasonsThatNeedAttentionAreShownWithTheMainOne(t *testing.T) {
	t.Parallel()
	m := NewMetrics(&disk.Probe{}, func() time.Duration { return 0 })
	registry := prometheus.NewRegistry()
	registry.MustRegister(m)
	m.last.Store(&round.Round{
		View:         policy.View{Self: policy.Self{Name: "n1"}},
		ClusterState: round.ClusterState{Op: &record.Op{HostName: "n3"}},
		Decision: policy.Decision{Reasons: []policy.Reason{
			{Code: policy.OperationInFlight}, {Code: policy.LowerRanked}, {Code: policy.TooManyVoters},
		}},
	})
	got := series(t, registry, "quorumd_reason", "quorumd_host_info", "quorumd_operation_host")
	want := map[string]float64{ // without LOWER_RANKED, which resolves by itself
		"quorumd_reason[reason=OPERATION_IN_FLIGHT]": 1, "quorumd_reason[reason=TOO_MANY_VOTERS]": 1,
		"quorumd_host_info[host=n1]": 1, "quorumd_operation_host[host=n3]": 1,
	}
	if !maps.Equal(got, want) {
		t.Errorf("a scrape shows %v, want %v", got, want)
	}
}

// findings returns the findings in a scrape: code, component and value, in alphabetical order.
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
			for _, label := range one.GetLabel() { // code and component, in alphabetical order
				line += label.GetValue() + " "
			}
			all = append(all, fmt.Sprint(line, one.GetGauge().GetValue()))
		}
	}
	slices.Sort(all)
	return all
}
