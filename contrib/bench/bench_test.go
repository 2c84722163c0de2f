// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"io"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

func TestRowsAreChosenByNameByGroupAndBySize(t *testing.T) {
	t.Parallel()
	const joins = "join/empty join/100MB join/1GB "
	const planned = "resize/3-5 resize/5-3 retire/3 leader/3 readdress/3 retire/5 leader/5 readdress/5 "
	const rest = "dead/standby dead/spare dead/standby-1GB dead/spare-1GB " +
		"slow-leader/50ms slow-leader/200ms slow-leader/500ms slow-leader/900ms " +
		"probe/10 probe/50 probe/300 probe/300-small " +
		"probe/10-slow probe/50-slow probe/300-slow snapshot/100MB snapshot/1GB " +
		"snapshot-shared/100MB snapshot-shared/1GB recover/empty recover/100MB recover/1GB busy proxy rest"
	for _, c := range []struct{ rows, sizes, want string }{
		{"", "", joins + "restart/3 restart/5 " + planned + rest},
		{"join", "", "join/empty join/100MB join/1GB"},
		{
			"probe,join/1GB", "",
			"join/1GB probe/10 probe/50 probe/300 probe/300-small probe/10-slow probe/50-slow probe/300-slow",
		},
		{"join", "empty 100MB", "join/empty join/100MB"},
		{"snapshot", "1GB", "snapshot/1GB"},
		{"", "5", joins + "restart/5 resize/3-5 resize/5-3 retire/5 leader/5 readdress/5 " + rest},
		{"rest restart", "3", "restart/3 rest"},
		{"dead slow-leader", "standby 900ms", "dead/standby slow-leader/900ms"},
		{"dead/spare-1GB,slow-leader/50ms", "", "dead/spare-1GB slow-leader/50ms"},
	} {
		chosen, err := choose(rows(), c.rows, c.sizes)
		if err != nil {
			t.Fatal(err)
		}
		var names []string
		for _, r := range chosen {
			names = append(names, r.name)
		}
		if got := strings.Join(names, " "); got != c.want {
			t.Errorf("rows %q, sizes %q: %s, want %s", c.rows, c.sizes, got, c.want)
		}
	}
	for _, c := range []struct{ rows, sizes, want string }{
		{"jion", "", `unknown row or size "jion"`},
		{"join", "7", `unknown row or size "7"`},
		{"join/1GB", "empty", "no row has that name and size"},
	} {
		if _, err := choose(rows(), c.rows, c.sizes); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("rows %q, sizes %q: got %v, want %q", c.rows, c.sizes, err, c.want)
		}
	}
}

func TestEveryRowIsComplete(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for _, r := range rows() {
		if seen[r.name] {
			t.Errorf("%s is declared twice", r.name)
		}
		seen[r.name] = true
		if r.about == "" || r.plainly == "" || r.ours == "" || len(r.figures) == 0 || r.need == 0 || r.bound == 0 {
			t.Errorf("%s lacks something: %+v", r.name, r)
		}
		if alone := r.plain != nil && r.quorumd != nil; alone == (r.both != nil) {
			t.Errorf("%s must have either two sides or one function for both", r.name)
		}
		if slices.ContainsFunc(r.figures, func(f figure) bool { return f.name == "" }) {
			t.Errorf("%s has a figure without a name", r.name)
		}
	}
}

// benchIn creates a bench whose programs are existing files.
func benchIn(t *testing.T, dir string) (*bench, error) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	b, err := newBench(options{dir: dir, quorumd: self, etcd: self, rounds: 1, limit: time.Minute}, io.Discard)
	if err == nil {
		t.Cleanup(func() { _ = b.lock.Close() })
	}
	return b, err
}

func TestABenchWithTooLittleSpaceIsRefusedWithFreeAndNeededSpace(t *testing.T) {
	t.Parallel()
	b, err := benchIn(t, t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := b.checkSpace([]row{{need: 1}, {need: 1 << 62}}); err == nil ||
		!strings.Contains(err.Error(), "and 4294967296.0 GiB are needed") {
		t.Errorf("got %v", err)
	}
	if _, err := b.checkSpace([]row{{need: 1}}); err != nil {
		t.Error(err)
	}
}

func TestTheTimeLimitIsTheSumOfTheRowsUnlessOneIsSet(t *testing.T) {
	t.Parallel()
	b, err := benchIn(t, t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	b.rounds = 5
	for limit, want := range map[time.Duration]time.Duration{
		0: 150 * time.Minute, time.Hour: time.Hour, 10 * time.Hour: 150 * time.Minute,
	} {
		b.limit = limit
		got, err := b.checkSpace([]row{{bound: 10 * time.Minute}, {bound: 20 * time.Minute}})
		if err != nil || got != want {
			t.Errorf("with a limit of %v: %v, %v; want %v", limit, got, err, want)
		}
	}
}

func TestASecondBenchInADirectoryIsRefused(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if _, err := benchIn(t, dir); err != nil {
		t.Fatal(err)
	}
	if _, err := benchIn(t, dir); err == nil || !strings.Contains(err.Error(), "another bench runs in "+dir) {
		t.Errorf("got %v", err)
	}
}

func TestAFailedRowKeepsItsLogsAndTheNextIsRun(t *testing.T) {
	t.Parallel()
	b, err := benchIn(t, t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	var left string
	broken := row{name: "broken", bound: time.Minute, plain: func(s *site) (values, error) {
		left = filepath.Join(s.dir, "log")
		return nil, errors.Join(errors.New("no luck"), os.WriteFile(left, nil, 0o600))
	}}
	ended := false
	whole := row{
		name: "whole", bound: time.Minute, figures: []figure{{name: taken}},
		plain: func(*site) (values, error) { return nil, &unavailable{"it is not installed"} },
		quorumd: func(s *site) (values, error) {
			s.atEnd(func(context.Context) error { ended = true; return nil })
			return values{taken: 7}, nil
		},
	}
	report := newReport(options{})
	if err := b.measure(t.Context(), []row{broken}, &report); err == nil || !strings.Contains(err.Error(), "no luck") {
		t.Errorf("got %v", err)
	}
	if _, err := os.Stat(left); err != nil {
		t.Errorf("the logs are gone: %v", err)
	}
	if err := b.measure(t.Context(), []row{broken, whole}, &report); err == nil {
		t.Error("the failure is not reported")
	}
	got := report.Rows[1]
	if !ended || got.Note != "it is not installed" || !slices.Equal(got.Figures[0].Quorumd, []float64{7}) {
		t.Errorf("ended %t, %+v", ended, got)
	}
}

func TestASideWithoutAFigureIsAFailure(t *testing.T) {
	t.Parallel()
	r := row{figures: []figure{{name: taken}, {name: cpu}, {name: leadFor, ours: true}}}
	all, part := values{taken: 1, cpu: 0, leadFor: 1}, values{taken: 1}
	plain := values{taken: 1, cpu: 0}
	for _, c := range []struct {
		plain, quorumd values
		note           string
		fits           bool
	}{
		{all, all, "", true},
		{plain, all, "", true},
		{all, plain, "", false},
		{nil, nil, "not there", true},
		{nil, nil, "", false},
		{nil, all, "not there", true},
		{nil, all, "", false},
		{all, part, "", false},
		{part, all, "", false},
	} {
		if err := r.checkComplete(c.plain, c.quorumd, c.note); (err == nil) != c.fits {
			t.Errorf("%v and %v: %v", c.plain, c.quorumd, err)
		}
	}
}

func TestAQuantileCoversTheTimeBetweenTwoReadings(t *testing.T) {
	t.Parallel()
	const text = `# TYPE fsync histogram
fsync_bucket{lane="direct",le="1"} 9
fsync_bucket{lane="direct",le="+Inf"} 9
fsync_sum{lane="direct"} 1
fsync_count{lane="direct"} 9
fsync_bucket{lane="wal",le="1"} 100
fsync_bucket{lane="wal",le="2"} 150
fsync_bucket{lane="wal",le="4"} 200
fsync_bucket{lane="wal",le="+Inf"} 201
fsync_sum{lane="wal"} 1
fsync_count{lane="wal"} 201
`
	all, err := parseHistogram([]byte(text), "fsync", "wal")
	if err != nil {
		t.Fatal(err)
	}
	h := all.since(histogram{[]bucket{{1, 100}, {2, 100}, {4, 100}, {math.Inf(1), 100}}, 0.5})
	if h.count() != 101 {
		t.Errorf("%v values were counted, want 101", h.count())
	}
	if h.mean() != 0.5/101 || h.bucketOf(0.5) != 4 || h.bucketOf(0.25) != 2 || !math.IsInf(h.bucketOf(1), 1) {
		t.Errorf("the mean is %v, and the median is in the bucket up to %v", h.mean(), h.bucketOf(0.5))
	}
	coarse := h.withBounds(histogram{buckets: []bucket{{4, 0}, {8, 0}, {math.Inf(1), 0}}})
	if coarse.bucketOf(0.25) != 4 || coarse.count() != 101 {
		t.Errorf("in coarser buckets it is %+v", coarse)
	}
	for q, want := range map[float64]float64{0.25: 1.505, 50.0 / 101: 2, 75.0 / 101: 3, 1: 4} {
		if got := h.quantile(q); math.Abs(got-want) > 1e-9 {
			t.Errorf("quantile %v is %v, want %v", q, got, want)
		}
	}
	if _, err := parseHistogram([]byte(text), "other", ""); err == nil {
		t.Error("found a histogram that does not exist")
	}
}

func TestTheCostOfAProcessIncludesItsChildren(t *testing.T) {
	t.Parallel()
	command := exec.Command("sh", "-c", "while :; do :; done & echo; wait")
	ready, err := command.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	self := os.Getpid()
	if _, err := ready.Read(make([]byte, 1)); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = command.Wait() })
	t.Cleanup(func() { killChildren(t, command.Process.Pid) })
	before, err := costOf(command.Process.Pid, 0)
	if err != nil {
		t.Fatal(err)
	}
	for deadline := time.Now().Add(time.Minute); ; {
		now, err := costOf(command.Process.Pid, 0)
		if err != nil {
			t.Fatal(err)
		}
		if now.cpu > before.cpu+0.05 && now.pss > 0 {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("a child that runs costs %v s of CPU, and %v s before", now.cpu, before.cpu)
		}
	}
	if got, err := costOf(command.Process.Pid, command.Process.Pid); err != nil || got != (cost{}) {
		t.Errorf("an excluded process has the cost %+v, %v", got, err)
	}
	if _, err := costOf(-self, 0); err == nil {
		t.Error("a process that does not exist has a cost")
	}
}
