// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

//go:build prometheus && faultfs

package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"go.yaml.in/yaml/v3"

	"github.com/quorumd/quorumd/contrib/testbed"
)

// alertmanagerBinary is Debian's Alertmanager; alertmanagerShare is the directory that it expects at /usr/share.
const (
	alertmanagerBinary = "../../.cache/prometheus/usr/bin/prometheus-alertmanager"
	alertmanagerShare  = "../../.cache/prometheus/usr/share"
)

// pager is an Alertmanager with our configuration, and its receivers.
type pager struct {
	t       *testing.T
	address string

	mu     sync.Mutex
	active map[string]map[string]map[string]string // labels of the active alerts, by receiver and alert
}

// newPager starts an Alertmanager with the shipped configuration, except that the notifications go to this test and the
// waits for a group are 1 s.
func newPager(t *testing.T) *pager {
	t.Helper()
	p := &pager{t: t, active: map[string]map[string]map[string]string{}}
	receivers := httptest.NewServer(p)
	t.Cleanup(receivers.Close)
	text, err := os.ReadFile("../prometheus/alertmanager.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var config map[string]any
	if err := yaml.Unmarshal(text, &config); err != nil {
		t.Fatal(err)
	}
	route := config["route"].(map[string]any)
	route["group_wait"], route["group_interval"] = "1s", "1s"
	for _, r := range config["receivers"].([]any) {
		receiver := r.(map[string]any)
		receiver["webhook_configs"] = []any{map[string]any{"url": receivers.URL + "/" + receiver["name"].(string)}}
	}
	dir := t.TempDir()
	if text, err = yaml.Marshal(config); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dir, "alertmanager.yaml")
	if err := os.WriteFile(file, text, 0o600); err != nil {
		t.Fatal(err)
	}
	p.address = fmt.Sprintf("127.0.0.1:%d", testbed.FreePorts(t, 1)[0])
	// Nothing is installed: Alertmanager sees its files through its own mount namespace.
	runBinary(t, "unshare", "--map-root-user", "--mount", "sh", "-c",
		`mount --bind "$1" /usr/share && shift && exec "$@"`, "sh", alertmanagerShare,
		alertmanagerBinary, "--config.file="+file, "--storage.path="+filepath.Join(dir, "data"),
		"--web.listen-address="+p.address, "--cluster.listen-address=", "--log.level=warn")
	testbed.Eventually(t, bound, "Alertmanager is ready", func() bool {
		answer, err := http.Get("http://" + p.address + "/-/ready")
		if err != nil {
			return false
		}
		answer.Body.Close()
		return answer.StatusCode == http.StatusOK
	})
	return p
}

// ServeHTTP records the active alerts of a notification. A notification contains all alerts of its group, active and
// resolved.
func (p *pager) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var note struct {
		Alerts []struct {
			Status string
			Labels map[string]string
		}
	}
	if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, 1<<20)).Decode(&note); err != nil {
		p.t.Errorf("cannot read a notification of Alertmanager: %v", err)
		return
	}
	stand := map[string]map[string]string{}
	for _, a := range note.Alerts {
		if a.Status == "firing" {
			stand[fmt.Sprint(a.Labels)] = a.Labels
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.active[strings.TrimPrefix(r.URL.Path, "/")] = stand
}

// notified returns the labels of the active alerts that were sent to operators.
func (p *pager) notified() []map[string]string {
	p.mu.Lock()
	defer p.mu.Unlock()
	var list []map[string]string
	for _, labels := range p.active["operators"] {
		list = append(list, labels)
	}
	return list
}

// inhibited returns the labels of the alerts that Alertmanager inhibits because another alert is active, or routes to
// the receiver none.
func (p *pager) inhibited() []map[string]string {
	ctx, cancel := context.WithTimeout(context.Background(), callTimeout)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+p.address+"/api/v2/alerts", nil)
	if err != nil {
		p.t.Fatal(err)
	}
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		return nil // Alertmanager is busy; until the next query, no alert counts as inhibited
	}
	defer answer.Body.Close()
	var alerts []struct {
		Labels    map[string]string
		Status    struct{ InhibitedBy []string }
		Receivers []struct{ Name string }
	}
	if err := json.NewDecoder(answer.Body).Decode(&alerts); err != nil {
		return nil
	}
	var list []map[string]string
	for _, a := range alerts {
		none := slices.ContainsFunc(a.Receivers, func(r struct{ Name string }) bool { return r.Name == "none" })
		if len(a.Status.InhibitedBy) > 0 || none {
			list = append(list, a.Labels)
		}
	}
	return list
}
