// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package qualify

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

func empty(t *testing.T, dir string) {
	t.Helper()
	if entries, err := os.ReadDir(dir); err != nil || len(entries) != 0 {
		t.Errorf("%v is left, %v", entries, err)
	}
}

func TestRealDiskIsMeasuredWithOneAndSeveralWriters(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	stages := map[string]bool{}
	var left []time.Duration
	r, err := Examine(t.Context(), Options{
		Child: command(asChild), Dir: dir, Writers: []int{3, 1, 3}, NextToEtcd: true, For: ShortestRun,
		Said: func(s Stage) {
			stages[s.What] = stages[s.What] || strings.Contains(s.Text, "of 1 s")
			left = append(left, s.Left)
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	if first, last := left[0], left[len(left)-1]; first != 2*ShortestRun || last != 0 {
		t.Errorf("time left: %s at the beginning, %s at the end", first, last)
	}
	if len(r.Runs) != 2 || r.Runs[0].Writers != 1 || r.Runs[1].Writers != 3 || !stages["1 writer"] ||
		!stages["3 writers"] {
		t.Fatalf("%+v, stages %v", r, stages)
	}
	for _, run := range r.Runs {
		in := 0
		for _, b := range run.Distribution {
			in += b.Count
		}
		if run.Writes == 0 || in != run.Writes || run.P50 <= 0 || run.P50 > run.P90 || run.P90 > run.P99 ||
			run.P99 > run.P999 || run.P999 > run.Max || run.P99Low > run.P99 || run.Seconds < 1 || run.Rate <= 0 {
			t.Errorf("%+v", run)
		}
	}
	if len(r.Findings) == 0 || r.Findings[len(r.Findings)-1].Name == "" || r.Result == "" {
		t.Errorf("%+v", r)
	}
	empty(t, dir)
}

func TestWriteFailureIsOneErrorWithARemedy(t *testing.T) {
	t.Parallel()
	closed := t.TempDir() // read-only for everyone but root
	if err := os.Chmod(closed, 0o555); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ name, dir, as, message, remedy string }{
		{"file", file, asChild, "not a directory", "create the parent directory"},
		{"closed", closed, asUnprivilegedChild, "permission denied", "run this command as etcd's user or as root"},
		{"too large", t.TempDir(), asSmallChild, "file too large", "free space or raise the limit"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			_, err := Examine(t.Context(), Options{Child: command(c.as), Dir: c.dir, For: ShortestRun})
			e, ok := errors.AsType[*Error](err)
			if !ok || !strings.HasPrefix(e.Message, "cannot write in "+c.dir+": ") ||
				!strings.HasSuffix(e.Message, ": "+c.message) || !strings.Contains(e.Remedy, c.remedy) {
				t.Errorf("%#v", err)
			}
			if c.name == "too large" {
				empty(t, c.dir)
			}
		})
	}
}

func TestInterruptedBenchmarkLeavesNoFiles(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	_, err := Examine(ctx, Options{
		Child: command(asChild), Dir: dir, Writers: []int{1}, For: LongestRun, Said: func(Stage) { cancel() },
	})
	if err == nil || err.Error() != "cannot finish the benchmark: it was interrupted" {
		t.Errorf("%v", err)
	}
	empty(t, dir)
}

func TestHangingDiskFailsAndLeftoversAreReported(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	// Opening a FIFO blocks until the other end is opened, like opening a file on a disk that hangs.
	probe := filepath.Join(dir, fmt.Sprintf(".quorumctl-qualify-%d-0", os.Getpid()))
	if err := os.Mkdir(probe, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := unix.Mkfifo(filepath.Join(probe, "wal.next"), 0o600); err != nil {
		t.Fatal(err)
	}
	r, err := Examine(t.Context(), Options{Child: command(asChild), Dir: dir, Writers: []int{1, 2}, For: LongestRun})
	if err != nil {
		t.Fatal(err)
	}
	if r.Result != Fail || len(r.Runs) != 1 || r.Runs[0].Hung != 1 || r.Runs[0].Max < longestWait.Seconds() ||
		len(r.Findings) < 2 ||
		r.Findings[0].Remedy != "when the disk answers again: rm -r "+probe ||
		!strings.HasPrefix(r.Findings[1].Text, "a write had not completed after ") {
		t.Errorf("%+v", r)
	}
}

func TestOnlyProvenResultsPass(t *testing.T) {
	t.Parallel()
	fit := Run{Writers: 1, Writes: 5000, P99: 0.002, P99Low: 0.0018, P99High: 0.0023, Max: 0.004}
	with := func(change func(*Run)) Run {
		r := fit
		change(&r)
		return r
	}
	crowd := Run{Writers: 16, Writes: 9000, P99: 0.05, P99Low: 0.04, P99High: 0.06, Max: 0.1}
	for _, c := range []struct {
		name   string
		runs   []Run
		result Result
		text   string // the text of one of the findings
	}{
		{
			"fit",
			[]Run{fit},
			Pass,
			"the 99th percentile of 5000 writes is 2 ms (1.8 ms to 2.3 ms with 95 % confidence), limit 10 ms",
		},
		{
			"slow",
			[]Run{with(func(r *Run) { r.P99, r.P99Low, r.P99High = 0.02, 0.018, 0.03 })},
			Fail,
			"the 99th percentile of 5000 writes is 20 ms, and with 95 % confidence more than 18 ms; limit 10 ms",
		},
		{
			"slow, few",
			[]Run{with(func(r *Run) { r.Writes, r.P99, r.P99Low, r.P99High = 11, 0.9, 0.8, 0 })},
			Fail,
			"the 99th percentile of 11 writes is 900 ms, and with 95 % confidence more than 800 ms; limit 10 ms",
		},
		{
			"close",
			[]Run{with(func(r *Run) { r.P99High = 0.011 })},
			Undecided,
			"the 99th percentile of 5000 writes is 2 ms (1.8 ms to 11 ms with 95 % confidence), too close to the " +
				"limit of 10 ms to tell",
		},
		{
			"few",
			[]Run{with(func(r *Run) { r.Writes, r.P99High = 300, 0 })},
			Undecided,
			"the 99th percentile of 300 writes is 2 ms, but these are too few writes for a result; limit 10 ms",
		},
		{"hung", []Run{with(func(r *Run) { r.Hung, r.Max = 1, 7 })}, Fail, "a write had not completed after 7 s"},
		{"crowd", []Run{fit, crowd}, Pass, "with 16 writers at once, the 99th percentile is 50 ms"},
		{
			"starved",
			[]Run{with(func(r *Run) { r.LeftOut = 2000 })},
			Pass,
			"with 1 writer, 2000 of 7000 writes were discarded because of CPU starvation",
		},
		{"starved, all", []Run{{Writers: 1, LeftOut: 9}}, Undecided, "of 0 writes"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			r := Report{Limit: Limit.Seconds(), Runs: c.runs}
			r.judgeRuns()
			found := false
			for _, f := range r.Findings {
				found = found || f.Text == c.text || c.name == "starved, all" && strings.Contains(f.Text, c.text)
				if (f.Result == Pass) != (f.Remedy == "") {
					t.Errorf("%+v", f)
				}
			}
			if got := r.sum(); got != c.result || !found {
				t.Errorf("%s: %+v", got, r.Findings)
			}
		})
	}
}

func TestOptionsOutOfRangeAreRefused(t *testing.T) {
	t.Parallel()
	for _, o := range []Options{
		{For: time.Millisecond},
		{For: 2 * LongestRun},
		{For: time.Minute, Writers: []int{0}},
		{For: time.Minute, Writers: []int{1, MostWriters + 1}},
	} {
		if err := o.Check(); err == nil || !strings.Contains(err.Error(), "out of range; use ") {
			t.Errorf("%+v: %v", o, err)
		}
	}
	if err := (Options{For: time.Minute, Writers: []int{1, MostWriters}}).Check(); err != nil {
		t.Error(err)
	}
}

func TestRootWritesOnlyWhereNoOtherUserMayRename(t *testing.T) {
	t.Parallel()
	for mode, others := range map[fs.FileMode]bool{
		fs.ModeDir | 0o755: false, fs.ModeDir | 0o775: true, fs.ModeDir | 0o757: true,
		fs.ModeDir | fs.ModeSticky | 0o777: false,
	} {
		if othersMayRename(mode) != others {
			t.Errorf("%s: others may rename: %t", mode, !others)
		}
	}
	dir := t.TempDir()
	if err := os.Chmod(dir, 0o777); err != nil {
		t.Fatal(err)
	}
	if err := safeFor(1000, dir); err != nil { // only root is refused
		t.Error(err)
	}
	// In another user's directory, the benchmark writes as that user.
	if err := safeFor(0, dir); (err != nil) != (os.Geteuid() == 0) {
		t.Error(err)
	}
}
