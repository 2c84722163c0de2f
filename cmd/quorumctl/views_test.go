// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"
	"time"
	"unicode"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"

	"github.com/quorumd/quorumd/agent/control"
	"github.com/quorumd/quorumd/agent/display"
	"github.com/quorumd/quorumd/health"
)

func TestEveryViewOfEveryScene(t *testing.T) {
	t.Parallel()
	for _, name := range scenes() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			socket, _ := serve(t, scene(t, name))
			golden(t, name+".golden", transcript(t, socket,
				"status", "status -o wide", "explain", "health", "operation show", "maintenance status",
				"rollout status",
				"member list", "bootstrap"))
		})
	}
}

func TestLinesAreShortAndHaveNoControlCharacters(t *testing.T) {
	t.Parallel()
	for _, name := range scenes() {
		d := scene(t, name)
		d.lines = []control.HistoryLine{{
			HostName: d.status.Cluster.Name, Kind: d.status.Cluster.Name,
			Code: d.status.Cluster.Name, Text: d.status.Cluster.Name + strings.Repeat("x", 300),
		}}
		socket, _ := serve(t, d)
		for _, command := range []string{
			"status", "explain", "health", "network", "operation show", "maintenance status",
			"rollout status", "member list", "bootstrap", "history", "wait --for voter --timeout 1ms",
		} {
			for _, form := range []string{"table", "wide", "yaml", "json"} {
				r := quorumctl(t, socket, append(splitLine(command), "-o", form)...)
				for _, line := range strings.Split(r.stdout+r.stderr, "\n") {
					if i := strings.IndexFunc(line, func(c rune) bool {
						return !unicode.IsPrint(c)
					}); i >= 0 && form != "json" {
						t.Errorf("%s %s -o %s: %q has a control character at %d", name, command, form, line, i)
					}
				}
				for _, line := range strings.Split(r.stdout, "\n") {
					if n := utf8.RuneCountInString(line); form == "table" && n > columns {
						t.Errorf("%s %s: %d columns: %q", name, command, n, line)
					}
				}
			}
		}
	}
}

func TestDocumentsMatchTheStatus(t *testing.T) {
	t.Parallel()
	d := scene(t, "joining")
	d.lines = sampleHistory()
	socket, _ := serve(t, d)
	golden(t, "documents.golden", transcript(t, socket,
		"status -o json", "status -o yaml", "health -o yaml", "explain -o yaml", "operation show -o yaml",
		"member list -o yaml", "history -n 1 -o yaml"))
	for _, name := range scenes() {
		d := scene(t, name)
		socket, _ := serve(t, d)
		asJSON, asYAML := quorumctl(t, socket, "status", "-o", "json"), quorumctl(t, socket, "status", "-o", "yaml")
		var s control.Status
		if err := json.Unmarshal([]byte(asJSON.stdout), &s); err != nil || !reflect.DeepEqual(s, d.status) {
			t.Errorf("%s: the JSON is not the status: %v", name, err)
		}
		var fromJSON, fromYAML any
		if err := yaml.Unmarshal([]byte(asJSON.stdout), &fromJSON); err != nil {
			t.Fatal(err)
		}
		if err := yaml.Unmarshal([]byte(asYAML.stdout), &fromYAML); err != nil {
			t.Fatal(err)
		}
		a, errA := json.Marshal(fromJSON)
		b, errB := json.Marshal(fromYAML)
		if errA != nil || errB != nil || string(a) != string(b) {
			t.Errorf("%s: YAML and JSON differ\n%s\n%s", name, a, b)
		}
	}
}

func sampleHistory() []control.HistoryLine {
	at := time.Date(2026, 11, 20, 10, 0, 0, 0, time.UTC)
	line := func(second int, host, kind, code, text string) control.HistoryLine {
		return control.HistoryLine{
			Revision: int64(100 + second), Time: at.Add(time.Duration(second) * time.Second),
			Host: host + "-5f3a", HostName: host, Kind: kind, Code: code, Text: text,
		}
	}
	return []control.HistoryLine{
		line(0, "n1", "step", "BOOTSTRAP", "started the cluster prod"),
		line(4, "n4", "refusal", "DISK_FSYNC_SLOW",
			"WAL fsync p99 41.3 ms is above 10 ms, so it does not qualify and cannot become a member before it has "+
				"been clean for 10 minutes"),
		line(12, "n2", "operation", "JOIN_BEGIN", "as voter, 1 of 3 voters"),
		line(19, "n2", "step", "PROMOTE", "steady for 60s, 3 entries behind"),
	}
}

func TestTheHistoryIsShownOldestFirst(t *testing.T) {
	t.Parallel()
	d := scene(t, "steady")
	empty, _ := serve(t, scene(t, "steady"))
	d.lines = sampleHistory()
	socket, _ := serve(t, d)
	got := transcript(t, socket, "history", "history -n 2 -o wide")
	golden(t, "history.golden", append(got, transcript(t, empty, "history")...))
}

func TestColoursOnlyOnRequest(t *testing.T) {
	t.Parallel()
	socket, _ := serve(t, scene(t, "slow"))
	for _, command := range []string{"status", "explain", "health"} {
		auto, never := quorumctl(t, socket, command), quorumctl(t, socket, command, "--color", "never")
		always := quorumctl(t, socket, command, "--color", "always")
		if auto != never || strings.Contains(auto.stdout, "\x1b") {
			t.Errorf("%s: a pipe gets colours", command)
		}
		if !strings.Contains(always.stdout, "\x1b[") {
			t.Errorf("%s: --color always writes no colours", command)
		}
		for i, line := range strings.Split(always.stdout, "\n") {
			if got, want := withoutColours(line), strings.Split(never.stdout, "\n")[i]; got != want {
				t.Errorf("%s: colours move the text\n%q\n%q", command, got, want)
			}
		}
		if json := quorumctl(t, socket, command, "--color", "always", "-o", "json"); strings.Contains(json.stdout,
			"\x1b") {
			t.Errorf("%s: a document has colours", command)
		}
	}
	golden(t, "colours.golden", transcript(t, socket, "status --color always"))
}

func withoutColours(line string) string {
	for {
		head, tail, ok := strings.Cut(line, "\x1b[")
		if !ok {
			return line
		}
		_, tail, _ = strings.Cut(tail, "m")
		line = head + tail
	}
}

func TestUnits(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ got, want string }{
		{display.Latency(0.000125), "0.125 ms"},
		{display.Latency(0.0413), "41.3 ms"},
		{display.Latency(0.99949), "999 ms"},
		{display.Latency(0.9996), "1 s"},
		{display.Latency(1.5), "1.5 s"},
		{display.Latency(1234.6), "1235 s"},
		{display.Latency(0), "0 ms"},
		{display.Span(0), "0s"},
		{display.Span(-time.Hour), "0s"},
		{display.Span(45 * time.Second), "45s"},
		{display.Span(59600 * time.Millisecond), "1m"},
		{display.Span(260 * time.Second), "4m20s"},
		{display.Span(3*time.Hour + 12*time.Minute + 9*time.Second), "3h12m"},
		{display.Span(2 * time.Hour), "2h"},
		{display.Span(52 * time.Hour), "2d4h"},
		{display.Age(nil), "never"},
		{display.Age(new(61.0)), "1m1s"},
		{display.Age(new(-5.0)), "0s"},
		{display.Age(new(1e300)), "11574d1h"},
		{display.Size(0), "0 B"},
		{display.Size(1023), "1023 B"},
		{display.Size(128849018880), "120 GiB"},
		{display.Size(1e18), "888 PiB"},
		{display.Count(1, "voter", "voters"), "1 voter"},
		{display.Count(0, "voter", "voters"), "0 voters"},
		{display.Timestamp(time.Date(2026, 11, 20, 11, 0, 0, 0, time.FixedZone("", 3600))), "2026-11-20 10:00:00Z"},
	} {
		if c.got != c.want {
			t.Errorf("got %q, want %q", c.got, c.want)
		}
	}
}

func FuzzPage(f *testing.F) {
	f.Add("a text", "\x1b[2J\x00\xff", 40)
	f.Add(strings.Repeat("word ", 60), strings.Repeat("x", 300), 3)
	f.Fuzz(func(t *testing.T, a, b string, n int) {
		p := &page{coloured: true}
		p.line("    [%s] %s: %d %s", word{a, bold}, b, n, word{b, bad})
		p.table(table{
			head: []string{"A", "B", "C"},
			rows: [][]word{cells(a, b, a+b), {{a, bad}, {b, good}, {a, warn}}},
		})
		for _, line := range strings.Split(p.String(), "\n") {
			line = withoutColours(line)
			if utf8.RuneCountInString(line) > columns || strings.ContainsFunc(line, func(r rune) bool {
				return !unicode.IsPrint(r)
			}) {
				t.Errorf("%d columns: %q", utf8.RuneCountInString(line), line)
			}
		}
	})
}

func TestHealthShowsUnavailableChecks(t *testing.T) {
	t.Parallel()
	d := scene(t, "steady")
	d.status.Health.NotAvailable = []health.Absence{{
		Check: "ecc", Component: "machine", Why: "the kernel has no driver for this memory controller",
	}, {
		Check: "etcd-leaders", Component: "etcd", Why: "etcd does not run here",
	}, {
		Check: "etcd-size", Component: "etcd", Why: "etcd does not run here",
	}}
	socket, _ := serve(t, d)
	out := quorumctl(t, socket, "health").stdout
	want := "\nnot available: ecc, in machine: the kernel has no driver for this memory controller\n" +
		"not available: etcd-leaders, etcd-size, in etcd: etcd does not run here\n"
	if !strings.Contains(out, want) {
		t.Errorf("got\n%s", out)
	}
}
