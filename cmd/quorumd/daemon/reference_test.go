// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package daemon

import (
	"cmp"
	"flag"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/quorumd/quorumd/agent/fleetlock"
	"github.com/quorumd/quorumd/agent/proxy"
	"github.com/quorumd/quorumd/agent/publish"
	"github.com/quorumd/quorumd/disk"
)

var update = flag.Bool("update", false, "rewrite the reference page of the metrics")

const metricsPage = "../../../contrib/docs/metrics.md"

// metric is a line of the page.
type metric struct{ name, kind, labels, help string }

var described = regexp.MustCompile(`^Desc\{fqName: "([^"]+)", help: "(.*)", unit: "[^"]*", ` +
	`constLabels: \{(.*)\}, variableLabels: \{(.*)\}\}$`)

// metricsOf returns quorumd's own metrics of a collector. The type of a metric without a value is derived from its
// name.
func metricsOf(t *testing.T, c prometheus.Collector, kinds map[string]string) []metric {
	t.Helper()
	descs := make(chan *prometheus.Desc, 1000)
	c.Describe(descs)
	close(descs)
	var list []metric
	for d := range descs {
		part := described.FindStringSubmatch(d.String())
		if part == nil {
			t.Fatalf("cannot read %s", d)
		}
		if !strings.HasPrefix(part[1], "quorumd_") {
			continue
		}
		m := metric{name: part[1], kind: kindByName(part[1]), labels: part[4], help: part[2]}
		if fixed, _, ok := strings.Cut(part[3], "="); ok {
			m.labels = fixed
		}
		if kind := kinds[m.name]; kind == "histogram" {
			m.kind = kind
		} else if kind != "" && kind != m.kind {
			t.Errorf("%s is a %s, but has the name of a %s", m.name, kind, m.kind)
		}
		list = append(list, m)
	}
	slices.SortFunc(list, func(a, b metric) int { return cmp.Compare(a.name, b.name) })
	return list
}

func kindByName(name string) string {
	if strings.HasSuffix(name, "_total") {
		return "counter"
	}
	return "gauge"
}

// TestReferenceOfMetrics compares the reference page with the registered collectors.
func TestReferenceOfMetrics(t *testing.T) {
	t.Parallel()
	registry, err := newRegistry("0", []prometheus.Collector{
		publish.NewMetrics(&disk.Probe{}, func() time.Duration { return 0 }),
	})
	if err != nil {
		t.Fatal(err)
	}
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	kinds := map[string]string{}
	for _, f := range families {
		kinds[f.GetName()] = strings.ToLower(f.GetType().String())
	}
	var b strings.Builder
	b.WriteString("<!-- Generated: go test ./cmd/quorumd/daemon -run Reference -update -->\n# Metrics\n\n" +
		"How to scrape them: [monitoring](monitoring.md#prometheus-metrics). A metric that is unknown has no series.\n")
	for _, part := range []struct {
		heading, text string
		list          []metric
	}{
		{
			"Agent", "On the address `metrics.listen`, path `/metrics`, with the `go_` and `process_` metrics of\n" +
				"every Go program.", metricsOf(t, registry, kinds),
		},
		{
			"Reboot agents", "On the same address, if `fleetlock.listen` is set.",
			metricsOf(t, fleetlock.New(fleetlock.Options{}).Metrics(), nil),
		},
		{
			"Client proxy", "On the socket of the [client proxy](client-proxy.md), with the `process_` metrics.",
			metricsOf(t, (&proxy.Proxy{}).Metrics(), nil),
		},
	} {
		fmt.Fprintf(&b, "\n## %s\n\n%s\n\n| metric | type | labels | meaning |\n|---|---|---|---|\n", part.heading,
			part.text)
		for _, m := range part.list {
			labels := m.labels
			if labels != "" {
				labels = "`" + strings.ReplaceAll(labels, ",", "`, `") + "`"
			}
			fmt.Fprintf(&b, "| `%s` | %s | %s | %s |\n", m.name, m.kind, labels, strings.ReplaceAll(m.help, "|", `\|`))
		}
	}
	if *update {
		if err := os.WriteFile(metricsPage, []byte(b.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if was, err := os.ReadFile(metricsPage); err != nil || string(was) != b.String() {
		t.Errorf("%s differs from the collectors (%v); go test ./cmd/quorumd/daemon -run Reference -update",
			metricsPage, err)
	}
}
