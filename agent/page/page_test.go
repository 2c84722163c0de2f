// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package page_test

import (
	"context"
	"encoding/json"
	"encoding/xml"
	"errors"
	"flag"
	"fmt"
	"io"
	"math"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/quorumd/quorumd/agent/control"
	"github.com/quorumd/quorumd/agent/page"
	"github.com/quorumd/quorumd/agent/policy"
	"github.com/quorumd/quorumd/agent/record"
	"github.com/quorumd/quorumd/health"
)

var update = flag.Bool("update", false, "rewrite the golden files")

const (
	finding  = "## QuorumdFinding\n\n<i>\n"
	runbooks = "# Runbooks\n<b>\n\n" + finding + "\n## QuorumdNeedsOperator\n\n1. Act.\n"
)

// seen is a source with a fixed status.
type seen struct {
	status  control.Status
	minutes []control.FsyncMinute
	lines   []control.HistoryLine
	err     error // error of reading the history
}

func (s seen) ClusterState() control.Status  { return s.status }
func (s seen) Fsyncs() []control.FsyncMinute { return s.minutes }

func (s seen) History(_ context.Context, limit int) ([]control.HistoryLine, error) {
	return s.lines[max(0, len(s.lines)-limit):], s.err
}

// statusOf returns a status by name: one of quorumctl's test statuses, or one derived from them, with backups or with
// full tables.
func statusOf(t *testing.T, name string) control.Status {
	t.Helper()
	switch name {
	case "crowded":
		return crowded(statusOf(t, "hostile"))
	case "backup":
		return backedUp(t, statusOf(t, "steady"))
	}
	text, err := os.ReadFile(filepath.Join("../../cmd/quorumctl/testdata", name+".json"))
	if err != nil {
		t.Fatal(err)
	}
	var s control.Status
	if err := json.Unmarshal(text, &s); err != nil {
		t.Fatal(err)
	}
	return s
}

const snapshot = "0000000000000004711-20261120T095959Z-n3-0123456789abcdef"

// backedUp adds a snapshot, a restore test and the hosts' connections to a status.
func backedUp(t *testing.T, s control.Status) control.Status {
	t.Helper()
	saved, tested := s.Time.Add(-2*time.Minute-33*time.Second), s.Time.Add(-time.Minute)
	s.Backup = &control.Backup{
		Name: snapshot, Saved: &saved, Host: "n3", Revision: 4711, Next: "n3 takes the next snapshot in 57m27s",
		RestoreTest: &control.RestoreTest{
			Name: snapshot, RestoreTested: &tested, Host: "n4", Revision: 4711, Keys: 538, Etcd: "3.6.16",
			TookSeconds: 1.29,
			Next:        "n4 runs the next restore test in 23h59m",
		},
	}
	for i := range s.Hosts {
		for _, m := range s.Cluster.Members {
			if m.ID != s.Hosts[i].MemberID {
				s.Hosts[i].Sees = append(s.Hosts[i].Sees, record.Reachability{
					MemberID: memberID(t, m.ID), Peer: "answers", Client: "answers", RTTSeconds: 0.00025,
				})
			}
		}
	}
	return s
}

// crowded fills the tables of a status with long names.
func crowded(s control.Status) control.Status {
	s.Cluster.Members, s.Hosts, s.Health.Certificates = nil, nil, nil
	var sees []record.Reachability
	for i := range 18 {
		id, name := fmt.Sprintf("%x", 1<<60+i), fmt.Sprintf("%s-%02d.example.org", strings.Repeat("long", 10), i)
		s.Cluster.Members = append(s.Cluster.Members, control.Member{ID: id, Name: name, Role: policy.RoleVoter})
		sees = append(sees, record.Reachability{
			MemberID: record.MemberID(1<<60 + i), Peer: []record.PortState{"answers", "refuses"}[i%2],
			Client: record.PortAnswers, RTTSeconds: 0.0004,
		})
		s.Health.Certificates = append(s.Health.Certificates, control.Certificate{
			Of: "member", Name: name + ":2379", Until: s.Time.Add(time.Duration(i-1) * 24 * time.Hour), State: "SLOW",
		})
	}
	for i, m := range s.Cluster.Members {
		s.Hosts = append(s.Hosts, control.HostRecord{
			ID: m.ID, MemberID: m.ID, Name: m.Name, Domain: m.Name, Role: policy.RoleVoter, EtcdVersion: "3.6.16",
			Health: []string{"OK", "SLOW", "STALLED"}[i%3], Waiting: "VOTER_NOT_LIVE", Sees: sees,
		})
	}
	return s
}

func get(t *testing.T, of seen, method, path string) (*http.Response, string) {
	t.Helper()
	h, err := page.New(of, page.About{
		FleetLock: "127.0.0.1:9380", Runbooks: runbooks,
		ByCode: map[string]string{"VOTER_NOT_LIVE": "QuorumdNeedsOperator"},
	})
	if err != nil {
		t.Fatal(err)
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), method, path, nil))
	return w.Result(), w.Body.String()
}

// hour returns an hour of measurements with a gap of ten minutes. The disk is slow at the end of the hour and hung in
// the second to last minute.
func hour(end time.Time) []control.FsyncMinute {
	var list []control.FsyncMinute
	for i := range 60 {
		if i >= 20 && i < 30 {
			continue
		}
		m := control.FsyncMinute{
			Start: end.Add(time.Duration(i-60) * time.Minute), Count: 75, MedianSeconds: 0.0006, MaxSeconds: 0.004,
		}
		if i > 50 {
			m.MedianSeconds, m.MaxSeconds = 0.021, 0.31
		}
		if i == 58 {
			m = control.FsyncMinute{Start: m.Start, HungSeconds: 42}
		}
		list = append(list, m)
	}
	return list
}

func TestPageShowsEveryStoryOfQuorumctl(t *testing.T) {
	t.Parallel()
	for _, name := range []string{
		"steady", "slow", "voter-down", "etcd-down", "fresh", "starting", "joining", "rollout", "paused", "overdue",
		"failed", "hostile", "crowded", "backup",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := statusOf(t, name)
			of := seen{status: s, minutes: hour(s.Time)}
			of.lines, of.err = historyOf(name, s)
			if name == "backup" || name == "voter-down" { // the documentation shows these two, so their disk is fast
				of.minutes = hour(s.Time.Add(10 * time.Minute))[20:40]
			}
			_, got := get(t, of, http.MethodGet, "/")
			harmless(t, got)
			got = withoutStyle(t, got)
			file := filepath.Join("testdata", name+".html")
			if *update {
				if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(want), got); diff != "" {
				t.Errorf("%s has changed (-was +is); go test ./agent/page -update writes it\n%s", file, diff)
			}
		})
	}
}

// historyOf returns the history that matches the status of that name.
func historyOf(name string, s control.Status) ([]control.HistoryLine, error) {
	line := func(ago time.Duration, host, kind, code, text string) control.HistoryLine {
		return control.HistoryLine{Time: s.Time.Add(-ago), HostName: host, Kind: kind, Code: code, Text: text}
	}
	switch name {
	case "fresh":
		return nil, nil
	case "starting":
		return nil, errors.New("cannot read the history: context deadline exceeded")
	case "etcd-down":
		return []control.HistoryLine{line(time.Minute, "n1", "refusal", "VOTER_NOT_LIVE", "voter n2 does not answer")},
			control.ErrNotNewest
	case "hostile", "crowded":
		name, long := s.Cluster.Name, strings.Repeat("x", 1000)
		return []control.HistoryLine{
			line(-time.Hour, name+long, name, name+long, name+strings.Repeat(" and more text", 100)),
			line(time.Hour, long, long, long, long),
		}, nil
	}
	lines := []control.HistoryLine{
		line(9*time.Hour, "n2", "operation", "JOINED", "join of n2 as voter has ended: the host has joined"),
		line(26*time.Minute, "n3", "refusal", "VOTER_NOT_LIVE", "voter n2 does not answer: 2 of 3 voters are up"),
		line(25*time.Minute, "n1", "operator", "PAUSED", "paused by root: the switch in rack 2 is replaced"),
		line(20*time.Minute, "n1", "operator", "RESUMED", "resumed by root"),
		line(2*time.Minute, "n3", "operator", "SNAPSHOT_SAVED", "snapshot "+snapshot+" saved by the schedule"),
		line(time.Minute, "n4", "operator", "RESTORE_TEST_PASSED",
			"restore test of snapshot "+snapshot+" passed, run by the schedule: etcd 3.6.16 served its 538 keys"),
	}
	if name == "voter-down" {
		lines = append(lines[:4], line(312*time.Second, "n1", "refusal", "VOTER_NOT_LIVE",
			"voter n3 does not answer: 2 of 3 voters are up"))
	}
	return lines, nil
}

// withoutStyle replaces the inline style with a link to the CSS file, so that a browser can show the golden files.
func withoutStyle(t *testing.T, text string) string {
	t.Helper()
	before, rest, begins := strings.Cut(text, "<style>")
	_, after, ends := strings.Cut(rest, "</style>")
	if !begins || !ends {
		t.Fatalf("the page has no style:\n%s", text)
	}
	return before + `<link rel="stylesheet" href="../page.css"/>` + after
}

// harmless parses a page strictly and fails the test if an element loads or runs anything, or links to a different
// site.
func harmless(t *testing.T, text string) {
	t.Helper()
	d := xml.NewDecoder(strings.NewReader(text))
	d.Entity = xml.HTMLEntity
	for {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			return
		} else if err != nil {
			t.Fatalf("%v in\n%s", err, text)
		}
		element, isElement := token.(xml.StartElement)
		if !isElement {
			continue
		}
		if slices.Contains([]string{"script", "img", "link", "iframe", "object", "form", "base"}, element.Name.Local) {
			t.Errorf("the page has an element %s", element.Name.Local)
		}
		for _, a := range element.Attr {
			name := a.Name.Local
			if name == "src" || name == "style" || strings.HasPrefix(name, "on") ||
				name == "href" && a.Value != "metrics" && a.Value != "runbooks" &&
					!regexp.MustCompile(`^runbooks/Quorumd[A-Za-z]+$`).MatchString(a.Value) {
				t.Errorf("an element %s has %s=%q", element.Name.Local, name, a.Value)
			}
		}
	}
}

func TestRecordsAreShownAsTextAndLoadNothing(t *testing.T) {
	t.Parallel()
	const evil = `"><script>alert(1)</script><img src=x onerror=alert(2)><a href="javascript:alert(3)">`
	s := statusOf(t, "steady")
	s.Cluster.Name, s.Cluster.Error, s.Cluster.Reachable, s.Host.Name = evil, evil, false, evil
	s.Reasons = []control.Reason{{Code: evil, Text: evil, Remedy: evil}}
	s.Health.State, s.Health.Text = evil, evil
	s.Health.Findings = []control.Finding{
		{Code: "X" + evil, State: evil, Text: evil, Cause: evil, Why: evil, Remedy: evil},
	}
	s.Health.Certificates = []control.Certificate{{Of: evil, Name: evil, State: evil}}
	s.Health.Mutes = []health.Mute{{Code: health.Code(evil), By: evil, Reason: evil}}
	s.Pause = &control.Pause{By: evil, Reason: evil}
	s.Op = &control.Op{Kind: evil, HostName: evil, Phase: evil, Progress: evil, Orphaned: true}
	s.Rollout = &control.Rollout{Work: evil, State: evil, By: evil, Reason: evil}
	for i := range s.Hosts {
		h := &s.Hosts[i]
		h.Name, h.Domain, h.Health, h.Waiting, h.EtcdVersion = evil, evil, evil, evil, evil
		h.Sees = []record.Reachability{{MemberID: memberID(t, s.Cluster.Members[0].ID), Peer: evil, Client: evil}}
	}
	for i := range s.Cluster.Members {
		s.Cluster.Members[i].Name = evil
	}
	lines := []control.HistoryLine{{Host: evil, HostName: evil, Kind: evil, Code: evil, Text: evil}}
	resp, got := get(t, seen{status: s, lines: lines, err: control.ErrNotNewest}, http.MethodGet, "/")
	harmless(t, got)
	_, denied := get(t, seen{status: s, err: errors.New(evil)}, http.MethodGet, "/")
	harmless(t, denied)
	policy := resp.Header.Get("Content-Security-Policy")
	if !strings.HasPrefix(policy, "default-src 'none'; style-src 'sha256-") || strings.Contains(policy, "unsafe") {
		t.Errorf("Content-Security-Policy: %s", policy)
	}
}

func TestPageOfTenThousandHostsIsSmallAndShowsUnhealthyHosts(t *testing.T) {
	t.Parallel()
	s := statusOf(t, "steady")
	long := strings.Repeat("<long>", 1000)
	for i := range 10_000 {
		h := control.HostRecord{
			ID: fmt.Sprint(i), Name: fmt.Sprintf("spare-%05d", i), Role: policy.RoleSpare, Health: "OK", Waiting: long,
			Sees: []record.Reachability{{
				MemberID: memberID(t, s.Cluster.Members[0].ID),
				Peer:     record.PortState(long), Client: record.PortState(long),
			}},
		}
		if i == 9_999 {
			h.Health = "SLOW"
		}
		s.Hosts = append(s.Hosts, h)
	}
	const most = 50 * time.Millisecond
	least, got := time.Hour, "" // best of several attempts, because other tests keep the machine busy
	for end := time.Now().Add(20 * time.Second); least > most && time.Now().Before(end); {
		began := time.Now()
		_, got = get(t, seen{status: s, minutes: hour(s.Time)}, http.MethodGet, "/")
		least = min(least, time.Since(began))
	}
	t.Logf("%d bytes after %s", len(got), least)
	if len(got) > 200<<10 || least > most {
		t.Errorf("the page has %d bytes after %s, want at most 200 KiB after %s", len(got), least, most)
	}
	for _, want := range []string{
		"spare-09999", ">SLOW<", "more hosts are not shown: ", " OK. quorumctl status lists them",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("the page lacks %q", want)
		}
	}
}

func TestOnlyCertificatesDueForRenewalAreShown(t *testing.T) {
	t.Parallel()
	s := statusOf(t, "steady")
	if len(s.Health.Certificates) == 0 {
		t.Fatal("the status has no certificates")
	}
	if _, calm := get(t, seen{status: s}, http.MethodGet, "/"); strings.Contains(calm, "Certificates") {
		t.Error("certificates that are good for months are shown")
	}
	_, due := get(t, seen{status: statusOf(t, "slow")}, http.MethodGet, "/")
	_, got, _ := strings.Cut(due, "<h2>Certificates due for renewal</h2>")
	for _, want := range []string{
		`<span class="bad">expired</span></td><td data-is="until">2026-11-19</td>`,
		`<span class="warn">19 days</span></td><td data-is="until">2026-12-10</td>`,
		"2 other certificates are not due.",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("%s is missing in %s", want, got)
		}
	}
	if strings.Index(got, "2026-11-19") > strings.Index(got, "2026-12-10") {
		t.Error("the first to end is not shown first")
	}
	if strings.Contains(got, "2027-10-20") {
		t.Errorf("a certificate that is good for months is shown: %s", got)
	}
}

type counted struct {
	seen

	asked *int
}

func (c counted) ClusterState() control.Status { *c.asked++; return c.seen.ClusterState() }

func TestPageIsRenderedAtMostOncePerSecond(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		asked := 0
		h, err := page.New(counted{seen{status: statusOf(t, "steady")}, &asked}, page.About{})
		if err != nil {
			t.Fatal(err)
		}
		look := func() {
			h.ServeHTTP(httptest.NewRecorder(), httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/", nil))
		}
		for range 100 {
			look()
		}
		if <-time.After(time.Second); asked != 1 {
			t.Errorf("the source was called %d times in a second", asked)
		}
		if look(); asked != 2 {
			t.Errorf("after a second the source was called %d times", asked)
		}
	})
}

func TestOnlyThePageAndTheRunbooksAreServed(t *testing.T) {
	t.Parallel()
	of := seen{status: statusOf(t, "steady")}
	resp, got := get(t, of, http.MethodGet, "/runbooks")
	if resp.StatusCode != http.StatusOK || resp.Header.Get("Content-Type") != "text/plain; charset=utf-8" ||
		got != runbooks {
		t.Errorf("GET /runbooks got %s: %s", resp.Status, got)
	}
	if _, got := get(t, of, http.MethodGet, "/runbooks/QuorumdFinding"); got != finding {
		t.Errorf("GET /runbooks/QuorumdFinding got %s", got)
	}
	for _, path := range []string{
		"/runbooks/Quorumd", "/status", "/index.html", "/runbooks/", "/debug/pprof/", "/page.css",
	} {
		if resp, _ := get(t, of, http.MethodGet, path); resp.StatusCode != http.StatusNotFound {
			t.Errorf("GET %s got %s", path, resp.Status)
		}
	}
	if resp, _ := get(t, of, http.MethodPost, "/"); resp.StatusCode != http.StatusMethodNotAllowed {
		t.Errorf("POST / got %s", resp.Status)
	}
}

func TestNoChartIsDrawnAfterTheClockWasSet(t *testing.T) {
	t.Parallel()
	s := statusOf(t, "steady")
	odd := []control.FsyncMinute{
		{Start: s.Time, Count: 1, MaxSeconds: 1}, {Start: s.Time.Add(1e6 * time.Hour), Count: 1},
	}
	if _, got := get(t, seen{status: s, minutes: odd}, http.MethodGet, "/"); strings.Contains(got, "<svg") {
		t.Error("drew a chart of a million hours")
	}
}

// TestTextHasEnoughContrast checks that text has the contrast that WCAG AA requires, 4.5 to 1.
func TestTextHasEnoughContrast(t *testing.T) {
	t.Parallel()
	style, err := os.ReadFile("page.css")
	if err != nil {
		t.Fatal(err)
	}
	light, dark, both := strings.Cut(string(style), "prefers-color-scheme: dark")
	if !both {
		t.Fatal("there is no dark colour scheme")
	}
	for name, text := range map[string]string{"light": light, "dark": dark} {
		colours := map[string]float64{}
		for _, m := range regexp.MustCompile(`--(\w+): #([0-9a-f]{3,6});`).FindAllStringSubmatch(text, -1) {
			colours[m[1]] = luminance(t, m[2])
		}
		for _, over := range []string{"text", "soft", "good", "warn", "bad", "line"} {
			for _, under := range []string{"card", "back"} {
				a, b := colours[over], colours[under]
				if ratio := (max(a, b) + 0.05) / (min(a, b) + 0.05); ratio < 4.5 {
					t.Errorf("%s: %s on %s has a contrast of %.2f", name, over, under, ratio)
				}
			}
		}
	}
}

// luminance returns the relative luminance of a colour as WCAG defines it: 0 for black, 1 for white.
func luminance(t *testing.T, hex string) float64 {
	t.Helper()
	if len(hex) == 3 {
		hex = string([]byte{hex[0], hex[0], hex[1], hex[1], hex[2], hex[2]})
	}
	sum := 0.0
	for i, weight := range []float64{0.2126, 0.7152, 0.0722} {
		n, err := strconv.ParseUint(hex[2*i:2*i+2], 16, 8)
		if err != nil {
			t.Fatal(err)
		}
		c := float64(n) / 255
		if c <= 0.04045 {
			c /= 12.92
		} else {
			c = math.Pow((c+0.055)/1.055, 2.4)
		}
		sum += weight * c
	}
	return sum
}

// memberID parses a hexadecimal member ID.
func memberID(t *testing.T, id string) (n record.MemberID) {
	t.Helper()
	if err := n.UnmarshalJSON([]byte(strconv.Quote(id))); err != nil {
		t.Fatal(err)
	}
	return n
}
