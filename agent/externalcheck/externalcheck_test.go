// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package externalcheck

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"
	"golang.org/x/sys/unix"

	"github.com/quorumd/quorumd/health"
)

// TestMain also acts as the child that executes a program. The child checks paths only from the directory in os.Args[2]
// on, because the directory for temporary files is world-writable.
func TestMain(m *testing.M) {
	if len(os.Args) == 4 && os.Args[1] == Command {
		_ = Main(os.Args[3:], os.Args[2]) // it reports the error itself
		os.Exit(2)                        // the exit code of a CRITICAL check
	}
	goleak.VerifyTestMain(m)
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// scripts writes programs into a directory that no other user may write to.
func scripts(t *testing.T, programs map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	must(t, os.Chmod(dir, 0o755))
	for name, text := range programs {
		writeProgram(t, filepath.Join(dir, name), "#!/bin/sh\n"+text+"\n")
	}
	return dir
}

// writeProgram creates an executable file. It does so in a separate process. Otherwise, a child that a concurrent test
// forks could have the file open for writing, and the kernel would refuse to execute it.
func writeProgram(t *testing.T, path, text string) {
	t.Helper()
	write := exec.Command("/bin/sh", "-c", `cat >"$0" && chmod 755 "$0"`, path)
	write.Stdin = strings.NewReader(text)
	must(t, write.Run())
}

// bench is a runner with the test's clock.
type bench struct {
	*Runner
	t    *testing.T
	log  bytes.Buffer
	from time.Time
}

func open(t *testing.T, dir string, timeout time.Duration, named ...string) *bench {
	t.Helper()
	b := &bench{t: t, from: time.Now()}
	self, err := os.Executable()
	must(t, err)
	b.Runner = Open(Options{
		Child: []string{self, Command, filepath.Dir(dir)}, Dir: dir, Named: named,
		Interval: 10 * time.Millisecond, Timeout: timeout,
		Now:    func() time.Duration { return time.Hour + time.Since(b.from) },
		Logger: slog.New(slog.NewTextHandler(&b.log, nil)),
	})
	return b
}

// until calls Read until a reading of that check meets the condition.
func (b *bench) until(
	ctx context.Context,
	name string,
	is func(health.ExternalCheckReading) bool,
) health.ExternalCheckReading {
	b.t.Helper()
	var last health.ExternalCheckReading
	for range 10000 {
		for _, r := range b.Read(ctx) {
			if r.Name != name {
				continue
			}
			if last = r; is(r) {
				return r
			}
		}
		<-time.After(5 * time.Millisecond)
	}
	b.t.Fatalf("%s: %+v", name, last)
	return last
}

func reported(r health.ExternalCheckReading) bool { return r.Runs > 0 || r.Absent != "" }

func TestExternalCheckResultsAreParsed(t *testing.T) {
	t.Parallel()
	b := open(t, scripts(t, map[string]string{
		"fine":    "echo 'LOAD OK - 1 | load1=0.5;5;10;0; users=3'",
		"warning": "echo 'DISK WARNING - /var'; exit 1",
		"bad":     `printf 'RAID CRITICAL\033[2J\nmore text\nand | rebuild=3%%\n'; echo to stderr >&2; exit 2`,
		"unknown": "echo what; exit 3",
		"odd":     "exit 7",
		"dies":    "kill -9 $$",
		"silent":  "",
		"flood":   "yes 'OK - a long line' | head -c 3000000; exit 0",
	}), 10*time.Second, "missing")
	ctx, end := context.WithCancel(t.Context())
	defer end()
	for name, want := range map[string]health.ExternalCheckReading{
		"fine": {State: health.OK, Text: "LOAD OK - 1", Figures: []health.ExternalCheckFigure{
			{Label: "load1", Value: 0.5}, {Label: "users", Value: 3},
		}},
		"warning": {State: health.Warm, Text: "DISK WARNING - /var"},
		"bad": {
			State: health.Slow, Text: "RAID CRITICAL?[2J",
			Figures: []health.ExternalCheckFigure{{Label: "rebuild", Unit: "%", Value: 3}},
		},
		"unknown": {Text: "what", Absent: "it reports UNKNOWN"},
		"odd":     {Absent: "its exit code is 7, which is not a Nagios status"},
		"dies":    {Absent: "it was killed by a signal"},
		"silent":  {State: health.OK},
		"flood":   {State: health.OK, Text: "OK - a long line"},
		"missing": {Absent: "there is no " + filepath.Join(b.opt.Dir, "missing")},
	} {
		r := b.until(ctx, name, reported)
		want.Name, want.Runs, want.Took, want.Absent = name, r.Runs, r.Took, sanitize(want.Absent)
		if (r.Runs == 0) != (want.Absent != "") {
			t.Errorf("%s: %d runs had a result", name, r.Runs)
		}
		if got, want := fmt.Sprintf("%+v", r), fmt.Sprintf("%+v", want); got != want {
			t.Errorf("got  %s\nwant %s", got, want)
		}
	}
	b.settle(end)
}

// settle calls end and waits until no program runs.
func (b *bench) settle(end func()) {
	b.t.Helper()
	end()
	for range 10000 {
		busy := false
		for _, p := range b.programs {
			p.mu.Lock()
			busy = busy || p.running
			p.mu.Unlock()
		}
		if !busy {
			return
		}
		<-time.After(5 * time.Millisecond)
	}
	b.t.Error("a program is still running")
}

// alive reports whether the process whose ID is in the file exists and is not a zombie.
func alive(t *testing.T, file string) bool {
	t.Helper()
	text, err := os.ReadFile(file)
	must(t, err)
	pid, err := strconv.Atoi(strings.TrimSpace(string(text)))
	must(t, err)
	state, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	return err == nil && !strings.Contains(string(state), ") Z ") && unix.Kill(pid, 0) == nil
}

func gone(t *testing.T, file string) {
	t.Helper()
	for range 4000 {
		if !alive(t, file) {
			return
		}
		<-time.After(5 * time.Millisecond)
	}
	t.Errorf("the process with its ID in %s is still running", file)
}

func TestSlowExternalCheckIsKilledWithItsChildren(t *testing.T) {
	t.Parallel()
	pids := t.TempDir()
	b := open(t, scripts(t, map[string]string{
		"slow": "sleep 300 & echo $! >" + pids + "/slow; trap '' TERM; wait",
	}), 5*time.Second)
	ctx, end := context.WithCancel(t.Context())
	defer end()
	r := b.until(ctx, "slow", reported)
	if r.Absent != "it did not finish within 5s and was killed" || r.Hung {
		t.Errorf("%+v", r)
	}
	gone(t, pids+"/slow")
	b.settle(end)
}

func TestProcessesLeftByAnExternalCheckAreKilled(t *testing.T) {
	t.Parallel()
	pids := t.TempDir()
	b := open(t, scripts(t, map[string]string{
		"leaves": "sleep 300 & echo $! >" + pids + "/left; echo OK",
	}), 10*time.Second)
	ctx, end := context.WithCancel(t.Context())
	defer end()
	began := time.Now()
	if r := b.until(ctx, "leaves", reported); r.State != health.OK || r.Text != "OK" ||
		time.Since(began) > 5*time.Second {
		t.Errorf("%+v after %s", r, time.Since(began))
	}
	gone(t, pids+"/left")
	b.settle(end)
}

// TestUnkillableExternalCheckIsCountedNotRepeatedAndBlocksNoOther simulates processes in uninterruptible sleep with a
// kill function that does nothing.
func TestUnkillableExternalCheckIsCountedNotRepeatedAndBlocksNoOther(t *testing.T) {
	t.Parallel()
	pids := t.TempDir()
	b := open(t, scripts(t, map[string]string{
		"hangs-a": "echo $$ >>" + pids + "/a; exec sleep 300", "hangs-b": "exec sleep 300",
		"hangs-c": "exec sleep 300", "well": "echo OK",
	}), 3*time.Second)
	groups := make(chan int, 10)
	var wakes atomic.Bool
	for _, p := range b.programs {
		p.kill = func(group int) {
			if wakes.Load() || p.name == "well" {
				killGroup(group)
				return
			}
			groups <- group
		}
	}
	ctx, end := context.WithCancel(t.Context())
	defer end()
	b.from = b.from.Add(-time.Minute)
	for _, name := range []string{"hangs-a", "hangs-b", "hangs-c"} {
		r := b.until(ctx, name, func(r health.ExternalCheckReading) bool { return r.Hung })
		if !strings.Contains(r.Absent, "has not exited") {
			t.Errorf("%+v", r)
		}
	}
	r := b.until(ctx, "well", func(r health.ExternalCheckReading) bool { return r.Runs > 2 })
	if r.State != health.OK {
		t.Errorf("%+v", r)
	}
	text, err := os.ReadFile(pids + "/a")
	must(t, err)
	if n := strings.Count(string(text), "\n"); n != 1 {
		t.Errorf("%d instances were started", n)
	}
	wakes.Store(true) // the processes can be killed from now on
	for range 3 {
		killGroup(<-groups)
	}
	b.until(ctx, "hangs-a", func(r health.ExternalCheckReading) bool { return !r.Hung })
	b.settle(end)
}

func TestProgramThatOthersMayChangeIsNotRun(t *testing.T) {
	t.Parallel()
	dir := scripts(t, map[string]string{"shared": "echo OK", "plain": "echo OK", "not-a-check.sh": "echo OK"})
	must(t, os.Chmod(filepath.Join(dir, "shared"), 0o777))
	must(t, os.Chmod(filepath.Join(dir, "plain"), 0o644))
	elsewhere := scripts(t, map[string]string{"target": "echo linked"})
	must(t, os.Symlink(filepath.Join(elsewhere, "target"), filepath.Join(dir, "linked")))
	b := open(t, dir, 5*time.Second)
	ctx, end := context.WithCancel(t.Context())
	defer end()
	for name, why := range map[string]string{
		"shared": filepath.Join(dir, "shared") + " is writable by users other than its owner: chmod go-w " +
			filepath.Join(dir, "shared"),
		"plain": "not a program: make it executable (chmod +x), or move it away",
	} {
		if r := b.until(ctx, name, reported); r.Absent != sanitize(why) {
			t.Errorf("%s: %+v", name, r)
		}
	}
	if r := b.until(ctx, "linked", reported); r.Text != "linked" {
		t.Errorf("a link is not followed: %+v", r)
	}
	must(t, os.Chmod(elsewhere, 0o777))
	r := b.until(ctx, "linked", func(r health.ExternalCheckReading) bool { return r.Absent != "" })
	if r.Absent != sanitize(elsewhere+" is writable by users other than its owner: chmod go-w "+elsewhere) {
		t.Errorf("%+v", r)
	}
	if len(b.programs) != 3 || !strings.Contains(b.log.String(), "not-a-check.sh") {
		t.Errorf("%d programs; log: %s", len(b.programs), &b.log)
	}
	b.settle(end)
}

func TestNumberOfProgramsIsBounded(t *testing.T) {
	t.Parallel()
	programs := map[string]string{"a-b": "", "a_b": ""}
	for i := range MaxPrograms + 5 {
		programs[fmt.Sprintf("c%d", i)] = ""
	}
	for name := range programs {
		programs[name] = "echo OK"
	}
	b := open(t, scripts(t, programs), 10*time.Second, "z-last", "a_b")
	externalChecks := b.List(func(string) health.Gate { return health.Joins })
	limits := health.DefaultThresholds()
	limits.ExternalChecks = externalChecks
	if _, err := health.New(limits); err != nil || externalChecks[0].Gates != health.Joins {
		t.Errorf("%d programs: %v", len(externalChecks), err)
	}
	ctx, end := context.WithCancel(t.Context())
	defer end()
	run, left := []string{}, []string{}
	for _, p := range externalChecks {
		if r := b.until(ctx, p.Name, reported); strings.Contains(r.Absent, "not run: there are more than 32") {
			left = append(left, p.Name)
		} else {
			run = append(run, p.Name)
		}
	}
	b.settle(end)
	if len(run) != MaxPrograms || run[0] != "a_b" || run[1] != "z-last" || slices.Contains(run, "a-b") {
		t.Errorf("run: %v", run)
	}
	if want := "skipped=" + strconv.Itoa(len(left)) + ` names="` + strings.Join(left, " ") + `"`; len(left) != 7 ||
		strings.Count(b.log.String(), want) != 1 {
		t.Errorf("skipped: %v; log:\n%s", left, &b.log)
	}
	crowd := map[string]string{}
	for i := range 3 * MaxPrograms {
		crowd[fmt.Sprintf("c%d", i)] = ""
	}
	if n := len(open(t, scripts(t, crowd), time.Second).programs); n != MaxPrograms+maxSkipped {
		t.Errorf("%d programs are listed", n)
	}
	none := open(t, filepath.Join(t.TempDir(), "none"), time.Second)
	if len(none.List(nil)) != 0 {
		t.Error("a missing directory has programs")
	}
}

func TestDirectoryWithThousandsOfFilesRunsOnlyConfiguredPrograms(t *testing.T) {
	t.Parallel()
	dir := scripts(t, map[string]string{"a": "echo OK", "named": "echo OK"})
	for i := range maxEntries {
		must(t, os.WriteFile(filepath.Join(dir, fmt.Sprintf("x%d", i)), nil, 0o644))
	}
	b := open(t, dir, time.Second, "named")
	if externalChecks := b.List(func(string) health.Gate { return health.Joins }); len(externalChecks) != 1 ||
		externalChecks[0].Name != "named" {
		t.Errorf("%d programs, first %+v", len(externalChecks), externalChecks[:min(2, len(externalChecks))])
	}
	if !strings.Contains(b.log.String(), "more than 4096 entries in "+dir+"; keep only checks in it") {
		t.Errorf("log:\n%s", &b.log)
	}
}
