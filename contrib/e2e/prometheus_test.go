// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

//go:build prometheus && faultfs

package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/quorumd/quorumd/contrib/testbed"
)

// prometheusBinary is Debian's Prometheus.
const prometheusBinary = "../../.cache/prometheus/usr/bin/prometheus"

// etcdMixin is etcd's own alerting rules, as its repository generates them.
const etcdMixin = "../../.cache/prometheus/etcd-mixin.json"

// shortenEtcdWaits shortens the minutes in etcd's rules (waits and ranges) to seconds. No range becomes shorter than 5
// s, because a rate needs several scrapes.
func shortenEtcdWaits(t *testing.T, rules string) string {
	t.Helper()
	const least, most = 3 * time.Second, 5 * time.Second // the limits of a shortened wait
	shortened := func(text string) time.Duration {
		long, err := time.ParseDuration(text)
		if err != nil {
			t.Fatal(err)
		}
		return max(long/60, least)
	}
	rules = regexp.MustCompile(`"for": "(\w+)"`).ReplaceAllStringFunc(rules, func(found string) string {
		return `"for": "` + min(shortened(found[len(`"for": "`):len(found)-1]), most).String() + `"`
	})
	return regexp.MustCompile(`\[\w+(:1m)?\]`).ReplaceAllStringFunc(rules, func(found string) string {
		window, step, _ := strings.Cut(strings.Trim(found, "[]"), ":")
		if step != "" {
			step = ":1s"
		}
		return "[" + max(shortened(window), most).String() + step + "]"
	})
}

// shortenWaits shortens the waits of the rules from minutes to seconds, and keeps their order.
func shortenWaits(rules string) string {
	for minutes, seconds := range map[int]int{1: 2, 5: 5, 15: 12, 30: 20} {
		rules = strings.ReplaceAll(rules, fmt.Sprintf("for: %dm\n", minutes), fmt.Sprintf("for: %ds\n", seconds))
	}
	return regexp.MustCompile(`(quorumd_voter_(?:dead|unhealthy)_seconds\)) > 60`).ReplaceAllString(rules, "$1 > 5")
}

// observed is a world with a Prometheus and an Alertmanager. Prometheus scrapes the agents and the etcds, and evaluates
// our rules and etcd's with shortened waits. Alertmanager has our configuration.
type observed struct {
	*world
	url   string
	pager *pager
}

func newObserved(t *testing.T, w *world) *observed {
	t.Helper()
	dir := t.TempDir()
	rules, err := os.ReadFile("../prometheus/quorumd.rules.yaml")
	if err != nil {
		t.Fatal(err)
	}
	mixin, err := os.ReadFile(etcdMixin)
	if err != nil {
		t.Fatalf("etcd's rules are missing: %v; make test-alerts generates them", err)
	}
	var agents, members []string
	for _, h := range w.hosts {
		agents = append(agents, fmt.Sprintf("%q", h.Options.Metrics))
		members = append(members, fmt.Sprintf("%q", address(h.Options.ClientURL)))
	}
	members = members[:3] // the voters: a host that is not a member yet would be a target that is down
	pager := newPager(t)
	// The rules keep only the label job, so the common label of both jobs is derived from it.
	config := fmt.Sprintf(`global: {scrape_interval: 1s, scrape_timeout: 900ms, evaluation_interval: 1s}
rule_files: [%s, %s]
alerting:
  alert_relabel_configs:
    - {source_labels: [job], regex: '(?:quorumd|etcd)-(.+)', target_label: cluster}
  alertmanagers: [static_configs: [targets: [%q]]]
scrape_configs:
  - {job_name: quorumd-a, static_configs: [{targets: [%s]}]}
  - {job_name: etcd-a, static_configs: [{targets: [%s]}]}
`, filepath.Join(dir, "rules.yaml"), filepath.Join(dir, "etcd.yaml"), pager.address, strings.Join(agents, ", "),
		strings.Join(members, ", "))
	for name, text := range map[string]string{
		"rules.yaml": shortenWaits(string(rules)), "etcd.yaml": shortenEtcdWaits(t, string(mixin)),
		"prometheus.yaml": config,
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	listen := fmt.Sprintf("127.0.0.1:%d", testbed.FreePorts(t, 1)[0])
	runBinary(t, prometheusBinary, "--config.file="+filepath.Join(dir, "prometheus.yaml"),
		"--storage.tsdb.path="+filepath.Join(dir, "data"), "--web.listen-address="+listen, "--log.level=warn")
	o := &observed{world: w, url: "http://" + listen, pager: pager}
	w.eventually("Prometheus has scraped every agent and every etcd", func() bool {
		return len(o.query("up == 1 and on (instance) quorumd_build_info")) == len(w.hosts) &&
			len(o.query("up == 1 and on (instance) etcd_server_id")) == len(members)
	})
	return o
}

// runBinary runs one of Debian's programs until the test ends.
func runBinary(t *testing.T, path string, args ...string) {
	t.Helper()
	var log strings.Builder
	command := exec.Command(path, args...)
	command.Stderr = &log
	if err := command.Start(); err != nil {
		t.Fatalf("cannot start Debian's %s: %v; make test-alerts fetches it", filepath.Base(path), err)
	}
	t.Cleanup(func() {
		_ = command.Process.Kill()
		_ = command.Wait() // it was killed
		if t.Failed() {
			t.Logf("the output of %s:\n%s", filepath.Base(path), log.String())
		}
	})
}

// query evaluates a query, and returns the labels of the results.
func (o *observed) query(query string) []map[string]string {
	o.t.Helper()
	ctx, cancel := context.WithTimeout(o.t.Context(), callTimeout)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet,
		o.url+"/api/v1/query?query="+url.QueryEscape(query), nil)
	if err != nil {
		o.t.Fatal(err)
	}
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		return nil // not up yet, or busy: the caller asks again
	}
	defer answer.Body.Close()
	var found struct {
		Error string
		Data  struct {
			Result []struct{ Metric map[string]string }
		}
	}
	if answer.StatusCode == http.StatusServiceUnavailable {
		return nil // it is still starting
	}
	if err := json.NewDecoder(answer.Body).Decode(&found); err != nil || found.Error != "" {
		o.t.Fatalf("%s: %s: %v %s", query, answer.Status, err, found.Error)
	}
	var list []map[string]string
	for _, r := range found.Data.Result {
		list = append(list, r.Metric)
	}
	return list
}

// checkDashboard evaluates the queries of the dashboard, except those about snapshots. Each must return a result.
func (o *observed) checkDashboard() {
	o.t.Helper()
	text, err := os.ReadFile("../grafana/quorumd.json")
	if err != nil {
		o.t.Fatal(err)
	}
	var dashboard struct {
		Annotations struct{ List []struct{ Name, Expr string } }
		Panels      []struct {
			Title   string
			Targets []struct{ Expr string }
		}
	}
	if err := json.Unmarshal(text, &dashboard); err != nil {
		o.t.Fatal(err)
	}
	queries := 0
	look := func(title, query string) {
		query = strings.NewReplacer("$job", ".*", "$instance", ".*", "$__rate_interval", "30s").Replace(query)
		if queries++; strings.Contains(query, "$") {
			o.t.Errorf("%s: unknown variable in %s", title, query)
		}
		o.within(bound, title+" shows something: "+query, func() bool { return len(o.query(query)) > 0 })
	}
	for _, a := range dashboard.Annotations.List {
		look(a.Name, a.Expr)
	}
	for _, p := range dashboard.Panels {
		for _, target := range p.Targets {
			if strings.Contains(target.Expr, "_interval_seconds") || strings.HasPrefix(p.Title, "Age of the newest") ||
				strings.HasPrefix(p.Title, "Age of the last restore") { // empty unless snapshots are configured
				continue
			}
			look(p.Title, target.Expr)
		}
	}
	o.t.Logf("%d queries of the dashboard", queries)
}
