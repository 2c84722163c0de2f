// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

//go:build nightly

package e2e

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"

	"github.com/quorumd/quorumd/agent/policy"
)

// TestSparesCostEtcdLittle runs 17 spares. It counts the requests to etcd at rest, and the writes while one spare
// replaces a voter that was removed.
func TestSparesCostEtcdLittle(t *testing.T) {
	t.Parallel()
	const hosts, voters = 20, 3
	w := newWorld(t, worldOptions{hosts: hosts, voters: voters, set: map[string]string{
		"timing.interval": "1s", "timing.hostRecordTTL": "30s", "disk.directInterval": "1s",
		"timing.learnerStall": "60s",
		"timing.callTimeout":  "2s", "timing.lockTTL": "20s",
	}})
	w.start(w.hosts[:voters]...)
	w.bootstrap()
	w.eventually("there are 3 voters", func() bool { return w.has(voters, 0) })
	w.start(w.hosts[voters:]...)
	w.eventually("the others are qualified and report that there is no place", func() bool {
		for _, h := range w.hosts[voters:] {
			if !h.healthy() || !h.waitsFor(policy.TargetMet) {
				return false
			}
		}
		return true
	})
	var revision int64
	w.eventually("nothing is written for 5 s", func() bool {
		before := w.revision()
		w.sleep(5 * time.Second)
		revision = w.revision()
		return before == revision
	})

	const span = 10 * time.Second
	before := w.handled()
	w.sleep(span)
	rest := float64(w.handled()-before) / span.Seconds()
	t.Logf("at rest: %.1f requests/s for %d hosts, %d writes", rest, hosts, w.revision()-revision)
	if rest > 7*hosts { // 8 per host if agents queried all members and read all records in every round
		t.Errorf("%.1f requests/s at rest", rest)
	}
	if written := w.revision() - revision; written > 2 {
		t.Errorf("%d writes in %s, although nothing has happened", written, span)
	}

	third := w.hosts[2]
	third.kill()
	third.killEtcd()
	revision = w.revision()
	began := time.Now()
	w.removeMember(third)
	w.within(3*time.Minute, "another spare is a voter", func() bool {
		return w.has(voters, 0) && w.absent(w.keys().Op())
	})
	took := time.Since(began)
	t.Logf("the replacement took %.1f s and %d writes", took.Seconds(), w.revision()-revision)
	lines, err := w.history()
	if err != nil {
		t.Fatal(err)
	}
	begun := 0
	for _, l := range lines {
		if l.Kind == "step" && l.Code == string(policy.StepBeginJoin) && l.Time.After(began) {
			begun++
		}
	}
	if begun != 1 {
		t.Errorf("%d hosts began to join for one place", begun)
	}
	if written := w.revision() - revision; written > 40 {
		t.Errorf("the replacement took %d writes", written)
	}
	spares := 0
	for _, h := range w.hosts[voters:] {
		if h.role() == policy.RoleSpare {
			spares++
		}
	}
	if spares != hosts-voters-1 {
		t.Errorf("%d spares are left", spares)
	}
}

// sleep waits for span. Meanwhile it records the data directories.
func (w *world) sleep(span time.Duration) {
	w.t.Helper()
	end := time.Now().Add(span)
	w.within(span+bound, "the time is over", func() bool { return time.Now().After(end) })
}

// revision returns etcd's revision, which every write increments.
func (w *world) revision() int64 {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), callTimeout)
	defer cancel()
	answer, err := w.hosts[0].etcd.Get(ctx, "/")
	if err != nil {
		w.t.Fatal(err)
	}
	return answer.Header.Revision
}

// removeMember removes a host's member, as an operator does.
func (w *world) removeMember(h *host) {
	w.t.Helper()
	w.eventually("etcd removes the member of "+h.Options.Name, func() bool {
		for _, m := range w.members() {
			if m.PeerURLs[0] != h.Options.PeerURL {
				continue
			}
			ctx, cancel := context.WithTimeout(context.Background(), callTimeout)
			_, err := w.hosts[0].etcd.MemberRemove(ctx, m.ID)
			cancel()
			return err == nil
		}
		return len(w.members()) > 0
	})
}

// handled returns the number of requests that the members have answered in total, according to etcd's own metrics.
func (w *world) handled() int {
	w.t.Helper()
	total := 0.0
	for _, m := range w.members() {
		if len(m.ClientURLs) == 0 {
			continue
		}
		n, err := handled(m.ClientURLs[0])
		if err != nil {
			w.t.Logf("not counted: %v", err) // a member that was just removed
		}
		total += n
	}
	return int(total)
}

func handled(url string) (float64, error) {
	ctx, cancel := context.WithTimeout(context.Background(), callTimeout)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url+"/metrics", nil)
	if err != nil {
		return 0, err
	}
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		return 0, err
	}
	defer answer.Body.Close()
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(answer.Body)
	if err != nil {
		return 0, fmt.Errorf("%s: %w", url, err)
	}
	total := 0.0
	for _, metric := range families["grpc_server_handled_total"].GetMetric() {
		for _, label := range metric.GetLabel() {
			if label.GetName() == "grpc_service" && strings.HasPrefix(label.GetValue(), "etcdserverpb.") {
				total += metric.GetCounter().GetValue()
			}
		}
	}
	return total, nil
}
