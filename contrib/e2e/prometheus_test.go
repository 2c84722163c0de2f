// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

//go:build prometheus

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
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/quorumd/quorumd/contrib/testbed"
)

// prometheusBinary is the real one, as Debian has it.
const prometheusBinary = "../../.cache/prometheus/usr/bin/prometheus"

// observed is a world with a Prometheus that scrapes its agents and has our rules, each of which waits for seconds in
// place of minutes.
type observed struct {
	*world
	url string
}

func newObserved(t *testing.T, w *world) *observed {
	t.Helper()
	dir := t.TempDir()
	rules, err := os.ReadFile("../prometheus/quorumd.rules.yaml")
	if err != nil {
		t.Fatal(err)
	}
	hurried := regexp.MustCompile(`for: \d+m`).ReplaceAllString(string(rules), "for: 3s")
	var targets []string
	for _, h := range w.hosts {
		targets = append(targets, fmt.Sprintf("%q", h.Options.Metrics))
	}
	config := fmt.Sprintf(`global: {scrape_interval: 1s, scrape_timeout: 900ms, evaluation_interval: 1s}
rule_files: [%s]
scrape_configs:
  - {job_name: etcd-a, static_configs: [{targets: [%s]}]}
`, filepath.Join(dir, "rules.yaml"), strings.Join(targets, ", "))
	for name, text := range map[string]string{"rules.yaml": hurried, "prometheus.yaml": config} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	listen := fmt.Sprintf("127.0.0.1:%d", testbed.FreePorts(t, 1)[0])
	var log strings.Builder
	command := exec.Command(prometheusBinary, "--config.file="+filepath.Join(dir, "prometheus.yaml"),
		"--storage.tsdb.path="+filepath.Join(dir, "data"), "--web.listen-address="+listen, "--log.level=warn")
	command.Stderr = &log
	if err := command.Start(); err != nil {
		t.Fatalf("cannot start Debian's Prometheus: %v; make test-alerts fetches it", err)
	}
	t.Cleanup(func() {
		_ = command.Process.Kill()
		_ = command.Wait() // it was killed
		if t.Failed() {
			t.Logf("Prometheus says:\n%s", log.String())
		}
	})
	o := &observed{world: w, url: "http://" + listen}
	w.eventually("Prometheus has scraped every agent", func() bool {
		return len(o.ask("up == 1 and on (instance) quorumd_build_info")) == len(w.hosts)
	})
	return o
}

// ask has a query answered, at this moment, and gives the labels of what is found.
func (o *observed) ask(query string) []map[string]string {
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
		return nil // not up yet, or busy: it is asked again
	}
	defer answer.Body.Close()
	var found struct {
		Error string
		Data  struct {
			Result []struct{ Metric map[string]string }
		}
	}
	if answer.StatusCode == http.StatusServiceUnavailable {
		return nil // it still starts
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

// raised gives the alerts that people would be told of, each with the host or reason that it is about.
func (o *observed) raised() []string {
	o.t.Helper()
	var list []string
	for _, alert := range o.ask(`ALERTS{alertstate="firing"}`) {
		about := alert["reason"] + alert["code"] + alert["name"]
		for _, h := range o.hosts {
			if about == "" && h.Options.Metrics == alert["instance"] {
				about = h.Options.Name
			}
		}
		list = append(list, strings.TrimSpace(alert["alertname"]+" "+about))
	}
	slices.Sort(list)
	return slices.Compact(list)
}

// raises waits until exactly these alerts are raised.
func (o *observed) raises(why string, want ...string) {
	o.t.Helper()
	began := time.Now()
	var last []string
	o.within(bound, fmt.Sprintf("%s raises %q, and nothing else", why, want), func() bool {
		got := o.raised()
		if !slices.Equal(got, last) {
			o.t.Logf("%5.1f s: %q", time.Since(began).Seconds(), got)
			last = got
		}
		return slices.Equal(got, want)
	})
}

func TestARealPrometheusRaisesWhatTheAlertsSayAndTheDashboardShowsSomething(t *testing.T) {
	t.Parallel()
	w := newWorld(t, worldOptions{hosts: 4, voters: 3, standbys: 1})
	w.start(w.hosts...)
	w.bootstrap()
	w.within(formation, "3 voters and a standby stand", func() bool { return w.has(3, 1) && !w.busy() })
	o := newObserved(t, w)
	o.raises("a cluster at rest")

	standby := w.hosts[slices.IndexFunc(w.hosts, func(h *host) bool { _, learner := w.is(h); return learner })]
	standby.kill()
	o.raises("an agent that was killed", "QuorumdAgentAbsent "+standby.Options.Name)
	w.start(standby)
	o.raises("an agent that is back")

	voter := w.hosts[1]
	if voter == standby {
		voter = w.hosts[2]
	}
	if c := me().ctl(voter, "maintenance", "on", "--reason", "a test", "--for", "1h"); c.code != 0 {
		t.Fatalf("maintenance on: %s", c.said)
	}
	o.raises("a host in its turn", "QuorumdTurn")
	o.shows()
	if c := me().ctl(voter, "maintenance", "off"); c.code != 0 {
		t.Fatalf("maintenance off: %s", c.said)
	}
	o.raises("a host that is back")
}

// shows has every query of the dashboard answered, and each must show something, but for those about what is not there.
func (o *observed) shows() {
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
	empty := map[string]bool{ // nothing is wrong, and nobody has any
		"Findings": true, "The operator's own checks": true,
	}
	queries := 0
	look := func(title, query string) {
		query = strings.NewReplacer("$job", ".*", "$instance", ".*", "$__rate_interval", "30s").Replace(query)
		if queries++; strings.Contains(query, "$") {
			o.t.Errorf("%s: nobody fills in %s", title, query)
		}
		o.within(bound, title+" shows something: "+query, func() bool { return len(o.ask(query)) > 0 || empty[title] })
	}
	for _, a := range dashboard.Annotations.List {
		look(a.Name, a.Expr)
	}
	for _, p := range dashboard.Panels {
		for _, target := range p.Targets {
			look(p.Title, target.Expr)
		}
	}
	o.t.Logf("%d queries of the dashboard", queries)
}
