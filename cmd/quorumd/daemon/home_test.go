// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package daemon

import (
	"io"
	"log/slog"
	"net/http"
	"strings"
	"testing"

	"github.com/quorumd/quorumd/agent/config"
)

// asked serves the metrics port and gives what it answers to a request.
func asked(t *testing.T, of about) func(method, path string) (*http.Response, string) {
	t.Helper()
	log := slog.New(slog.DiscardHandler)
	s, err := listenMetrics(config.Metrics{Listen: "127.0.0.1:0"}, of, log)
	if err != nil {
		t.Fatal(err)
	}
	served(t, s, log)
	return func(method, path string) (*http.Response, string) {
		req, err := http.NewRequestWithContext(t.Context(), method, "http://"+s.listener.Addr().String()+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		body, err := io.ReadAll(resp.Body)
		if err != nil {
			t.Fatal(err)
		}
		return resp, string(body)
	}
}

func TestTheRootOfTheMetricsPortLeadsToWhatThereIs(t *testing.T) {
	t.Parallel()
	get := asked(t, about{Version: "1.2.3", Host: "n1<b>", Cluster: "main", FleetLock: "127.0.0.1:9380"})
	resp, page := get(http.MethodGet, "/")
	if kind := resp.Header.Get("Content-Type"); resp.StatusCode != http.StatusOK ||
		kind != "text/html; charset=utf-8" {
		t.Errorf("GET / got %s, %s", resp.Status, kind)
	}
	for _, part := range []string{
		`href="metrics"`, "http://127.0.0.1:9380/", "man 8 quorumd", "1.2.3", "cluster main", "n1&lt;b&gt;",
	} {
		if !strings.Contains(page, part) {
			t.Errorf("the page lacks %q:\n%s", part, page)
		}
	}
	if len(page) > 4<<10 || strings.Contains(page, "src=") || strings.Contains(page, "<link") ||
		strings.Contains(page, "n1<b>") {
		t.Errorf("the page is long, loads something, or takes a name for markup:\n%s", page)
	}
	if resp, _ := get(http.MethodGet, "/metrics"); resp.StatusCode != http.StatusOK {
		t.Errorf("what the page leads to got %s", resp.Status)
	}
}

func TestThePageSaysNothingOfFleetLockWhereNobodyListensForRebootAgents(t *testing.T) {
	t.Parallel()
	_, page := asked(t, about{Version: "1.2.3", Host: "n1"})(http.MethodGet, "/")
	if !strings.Contains(page, "quorumd on n1") || strings.Contains(page, "FleetLock") {
		t.Error(page)
	}
}

func TestOtherPathsOfTheMetricsPortStayUnknown(t *testing.T) {
	t.Parallel()
	get := asked(t, about{Version: "1.2.3", Host: "n1"})
	for _, path := range []string{"/status", "/metrics/", "/index.html", "/debug/pprof/"} {
		if resp, _ := get(http.MethodGet, path); resp.StatusCode != http.StatusNotFound {
			t.Errorf("GET %s got %s", path, resp.Status)
		}
	}
	if resp, _ := get(http.MethodPost, "/"); resp.StatusCode != http.StatusMethodNotAllowed {
		t.Errorf("POST / got %s", resp.Status)
	}
}
