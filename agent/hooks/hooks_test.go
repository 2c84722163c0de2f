// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package hooks

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
	"unicode/utf8"

	"go.uber.org/goleak"
	"golang.org/x/sys/unix"
)

// runnerVariable makes the test binary act as the runner when it runs again as a child.
const runnerVariable = "QUORUMD_TEST_HOOKS"

func TestMain(m *testing.M) {
	if dir := os.Getenv(runnerVariable); dir != "" {
		os.Exit(playRunner(dir, os.Args[1], os.Args[2]))
	}
	// A second child for a run in progress does nothing, and may outlive the test.
	goleak.VerifyTestMain(m, goleak.IgnoreAnyFunction("os/exec.(*Cmd).Wait"))
}

func playRunner(dir, timeout, when string) int {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	limit, err := time.ParseDuration(timeout)
	if err == nil {
		l := Runner{
			Dir: dir, Requests: filepath.Join(dir, "wanted"), Outcomes: filepath.Join(dir, "outcomes"), Host: "n1",
			Timeout: limit, Command: 10 * limit, Output: os.Stderr,
			Logger: slog.New(slog.NewTextHandler(os.Stderr, nil)),
		}
		err = l.Run(ctx, when)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

// bench is a simulated host with hooks.
type bench struct {
	t        *testing.T
	dir      string
	launcher *Launcher
}

func newBench(t *testing.T, timeout time.Duration) *bench {
	t.Helper()
	b := &bench{t: t, dir: t.TempDir()}
	for _, sub := range []string{"before.d", "after.d", "wanted", "outcomes"} {
		if err := os.Mkdir(filepath.Join(b.dir, sub), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	b.launcher = b.agent(timeout)
	return b
}

// requests returns the directory for the agent's requests.
func (b *bench) requests() string { return filepath.Join(b.dir, "wanted") }

// agent returns a new Launcher, as after a restart of the agent.
func (b *bench) agent(timeout time.Duration) *Launcher {
	self, err := os.Executable()
	if err != nil {
		b.t.Fatal(err)
	}
	child := AsChild(b.requests(), func(when string) []string {
		return []string{"/usr/bin/env", runnerVariable + "=" + b.dir, self, timeout.String(), when}
	})
	return NewLauncher(b.dir, filepath.Join(b.dir, "outcomes"), child)
}

// hook writes a shell script.
func (b *bench) hook(when, name, script string) {
	b.t.Helper()
	path := filepath.Join(b.dir, when+".d", name)
	if err := os.WriteFile(path, []byte("#!/bin/sh\ncd "+b.dir+"\n"+script+"\n"), 0o755); err != nil {
		b.t.Fatal(err)
	}
}

func (b *bench) read(name string) string {
	text, _ := os.ReadFile(filepath.Join(b.dir, name))
	return string(text)
}

func run(when, id string) Run {
	return Run{When: when, ID: id, Work: "reboot", Reason: "new kernel", By: "root"}
}

func (b *bench) start(r Run) {
	b.t.Helper()
	if err := b.launcher.Start(b.t.Context(), r); err != nil {
		b.t.Fatal(err)
	}
}

// until waits for a run to reach a state.
func (b *bench) until(r Run, want State) Result {
	b.t.Helper()
	var got Result
	b.eventually("the run is "+string(want), func() bool {
		var err error
		if got, err = b.launcher.State(b.t.Context(), r); err != nil {
			b.t.Fatal(err)
		}
		if got.State != want && (got.State == Done || got.State == Failed) {
			b.t.Fatalf("the run ended as %+v, want %s", got, want)
		}
		return got.State == want
	})
	return got
}

func (b *bench) eventually(what string, is func() bool) {
	b.t.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	limit := time.After(30 * time.Second)
	for !is() {
		select {
		case <-tick.C:
		case <-limit:
			b.t.Fatalf("timed out after 30 s: %s", what)
		}
	}
}

func TestHooksRunInTheOrderOfTheirNamesWithTheirEnvironment(t *testing.T) {
	t.Parallel()
	b := newBench(t, time.Minute)
	b.hook(Before, "20-second", `echo second >>order`)
	b.hook(Before, "10-first", `echo first >>order; env | grep QUORUMD_ | sort >env`)
	b.hook(Before, "10-first~", `echo edited >>order`)
	b.hook(Before, ".hidden", `echo hidden >>order`)
	b.hook(Before, "20-second.dpkg-old", `echo old >>order`)
	b.hook(After, "10-other", `echo after >>order`)
	r := run(Before, "1")
	if got, err := b.launcher.State(t.Context(), r); err != nil || got.State != None {
		t.Fatalf("before the start: %+v, %v", got, err)
	}
	b.start(r)
	b.until(r, Done)
	if got := b.read("order"); got != "first\nsecond\n" {
		t.Errorf("ran:\n%s", got)
	}
	want := "QUORUMD_BY=root\nQUORUMD_HOST=n1\nQUORUMD_REASON=new kernel\nQUORUMD_WHEN=before\nQUORUMD_WORK=reboot\n"
	if got := b.read("env"); got != want {
		t.Errorf("the environment was\n%s", got)
	}
}

func TestRunWithOneIDRunsOnce(t *testing.T) {
	t.Parallel()
	b := newBench(t, time.Minute)
	b.hook(Before, "10-count", `echo x >>count`)
	for range 3 {
		b.start(run(Before, "1"))
		b.until(run(Before, "1"), Done)
	}
	// The runner also prevents a second run with the same ID, even if two runners are launched at the same moment.
	if err := b.launcher.launch(t.Context(), run(Before, "1")); err != nil {
		t.Fatal(err)
	}
	b.start(run(Before, "2"))
	if err := b.launcher.launch(t.Context(), run(Before, "2")); err != nil {
		t.Fatal(err)
	}
	b.until(run(Before, "2"), Done)
	if got := b.read("count"); got != "x\nx\n" {
		t.Errorf("%d runs", strings.Count(got, "x"))
	}
}

func TestFirstFailureEndsTheRunAndIsReported(t *testing.T) {
	t.Parallel()
	b := newBench(t, time.Minute)
	b.hook(Before, "10-drain", "echo draining\necho 'cannot drain: a job is running' >&2\nexit 3")
	b.hook(Before, "20-next", `echo x >ran`)
	b.start(run(Before, "1"))
	got := b.until(run(Before, "1"), Failed)
	if got.Hook != "10-drain" || got.Text != "exit status 3: cannot drain: a job is running" {
		t.Errorf("%+v", got)
	}
	if b.read("ran") != "" {
		t.Error("the next program ran")
	}
}

func TestHungHookIsKilledWithItsChildren(t *testing.T) {
	t.Parallel()
	b := newBench(t, 300*time.Millisecond)
	b.hook(Before, "10-hang", `sh -c 'echo $$ >pid; trap "" TERM; while :; do sleep 60; done'`)
	b.start(run(Before, "1"))
	got := b.until(run(Before, "1"), Failed)
	if got.Hook != "10-hang" || got.Text != "it took longer than 300ms and was killed" {
		t.Errorf("%+v", got)
	}
	pid, err := strconv.Atoi(strings.TrimSpace(b.read("pid")))
	if err != nil || pid <= 1 {
		t.Fatalf("PID %d: %v", pid, err)
	}
	b.eventually("its child is gone", func() bool { return unix.Kill(pid, 0) != nil })
}

func TestFileThatIsNotExecutableFailsTheRun(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		mode os.FileMode
		text string
		want string
	}{
		"not executable":     {0o644, "#!/bin/sh\n", "chmod +x"},
		"writable by others": {0o777, "#!/bin/sh\n", "chmod go-w"},
		"no interpreter":     {0o755, "#!/nowhere/sh\n", "no such file"},
		"no format":          {0o755, "\x00", "exec format error"},
	} {
		b := newBench(t, time.Minute)
		path := filepath.Join(b.dir, "before.d", "10-x")
		if err := os.WriteFile(path, []byte(c.text), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(path, c.mode); err != nil {
			t.Fatal(err)
		}
		b.start(run(Before, "1"))
		if got := b.until(run(Before, "1"), Failed); !strings.Contains(got.Text, c.want) {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

func TestWithoutHooksThereIsNothingToStart(t *testing.T) {
	t.Parallel()
	b := newBench(t, time.Minute)
	if got, err := b.launcher.State(t.Context(), run(After, "1")); err != nil || got.State != Done {
		t.Errorf("an empty directory: %+v, %v", got, err)
	}
	os.Remove(filepath.Join(b.dir, "after.d"))
	if got, err := b.launcher.State(t.Context(), run(After, "1")); err != nil || got.State != Done {
		t.Errorf("no directory: %+v, %v", got, err)
	}
}

func TestHooksContinueIfTheAgentIsReplaced(t *testing.T) {
	t.Parallel()
	b := newBench(t, time.Minute)
	b.hook(Before, "10-long", `while [ ! -e go ]; do sleep 0.02; done; echo x >>count`)
	r := run(Before, "1")
	b.start(r)
	if got := b.until(r, Running); got.Hook != "10-long" {
		t.Errorf("%+v", got)
	}
	b.launcher = b.agent(time.Minute)
	b.start(r)
	if got := b.until(r, Running); got.Hook != "10-long" {
		t.Errorf("%+v", got)
	}
	if err := os.WriteFile(filepath.Join(b.dir, "go"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	b.until(r, Done)
	if got := b.read("count"); got != "x\n" {
		t.Errorf("%d runs", strings.Count(got, "x"))
	}
}

func TestKilledRunHasFailedAndDoesNotRunAgain(t *testing.T) {
	t.Parallel()
	b := newBench(t, time.Minute)
	b.hook(Before, "10-long", `echo $PPID >parent; echo $$ >pid; while :; do sleep 60; done`)
	r := run(Before, "1")
	b.start(r)
	b.eventually("it runs", func() bool { return b.read("pid") != "" && b.read("parent") != "" })
	for _, name := range []string{"parent", "pid"} {
		pid, err := strconv.Atoi(strings.TrimSpace(b.read(name)))
		if err != nil || pid <= 1 {
			t.Fatalf("PID %d: %v", pid, err)
		}
		target := pid
		if name == "pid" {
			target = -pid // the process group of the hook, which includes its sleep
		}
		if err := unix.Kill(target, unix.SIGKILL); err != nil {
			t.Fatal(err)
		}
	}
	if got := b.until(r, Failed); got.Hook != "10-long" || !strings.Contains(got.Text, "without a result") {
		t.Errorf("%+v", got)
	}
	b.start(r)
	if got := b.until(r, Failed); got.Hook != "10-long" {
		t.Errorf("%+v", got)
	}
}

func TestStoppedRunEndsItsProgram(t *testing.T) {
	t.Parallel()
	b := newBench(t, time.Minute)
	b.hook(Before, "10-long", `echo $PPID >parent; echo $$ >pid; sleep 60`)
	b.start(run(Before, "1"))
	b.eventually("it runs", func() bool { return b.read("pid") != "" && b.read("parent") != "" })
	parent, _ := strconv.Atoi(strings.TrimSpace(b.read("parent")))
	if parent <= 1 || unix.Kill(parent, unix.SIGTERM) != nil {
		t.Fatalf("cannot stop PID %d", parent)
	}
	if got := b.until(run(Before, "1"), Failed); got.Text != "it was interrupted" {
		t.Errorf("%+v", got)
	}
}

func TestChildLeftBehindDoesNotDelayTheRun(t *testing.T) {
	t.Parallel()
	b := newBench(t, time.Minute)
	b.hook(Before, "10-daemon", `sleep 30 & echo $! >pid`)
	b.start(run(Before, "1"))
	b.until(run(Before, "1"), Done)
	if pid, _ := strconv.Atoi(strings.TrimSpace(b.read("pid"))); pid > 1 {
		_ = unix.Kill(pid, unix.SIGKILL)
	}
}

func TestLaunchThatFailsOrDoesNotBeginIsAnError(t *testing.T) {
	t.Parallel()
	b := newBench(t, time.Minute)
	b.hook(Before, "10-x", "")
	b.launcher.launch = func(context.Context, Run) error { return fmt.Errorf("no such unit") }
	if err := b.launcher.Start(t.Context(), run(Before, "1")); err == nil ||
		!strings.Contains(err.Error(), "cannot run the hooks of before.d: no such unit") {
		t.Errorf("%v", err)
	}
	b.launcher.launch = func(context.Context, Run) error { return nil }
	b.start(run(Before, "1"))
	b.launcher.since = time.Now().Add(-2 * BeginWithin)
	if err := b.launcher.Start(t.Context(), run(Before, "1")); err == nil ||
		!strings.Contains(err.Error(), "ago, but nothing runs yet") {
		t.Errorf("%v", err)
	}
}

func TestAgentsRecordIsNotTrusted(t *testing.T) {
	t.Parallel()
	b := newBench(t, time.Minute)
	runner := Runner{
		Dir: b.dir, Requests: filepath.Join(b.dir, "wanted"), Outcomes: filepath.Join(b.dir, "outcomes"),
		Timeout: time.Minute, Logger: slog.New(slog.DiscardHandler),
	}
	path := requestPath(runner.Requests, Before)
	for what, put := range map[string]func() error{
		"garbage":         func() error { return os.WriteFile(path, []byte("{"), 0o600) },
		"something large": func() error { return os.WriteFile(path, make([]byte, maxRecord+1), 0o600) },
		"unknown keys":    func() error { return os.WriteFile(path, []byte(`{"id":"1","LD_PRELOAD":"x"}`), 0o600) },
		"a link":          func() error { return os.Symlink("/etc/hostname", path) },
		"a pipe":          func() error { return unix.Mkfifo(path, 0o600) },
		"nothing":         func() error { return nil },
	} {
		os.Remove(path)
		if err := put(); err != nil {
			t.Fatal(err)
		}
		if err := runner.Run(t.Context(), Before); err == nil {
			t.Errorf("%s is accepted", what)
		}
	}
	if err := runner.Run(t.Context(), "../before"); err == nil {
		t.Error("an unknown occasion is accepted")
	}
	long := "a\nb\x00c\xffd " + strings.Repeat("ü", 2*maxText)
	if got := sanitize(long); strings.ContainsFunc(got, func(r rune) bool {
		return r < 32 || r == utf8.RuneError
	}) || len([]rune(got)) != maxText+1 {
		t.Errorf("%q", got)
	}
}

func TestUntrustedProgramIsNotRun(t *testing.T) {
	t.Parallel()
	b := newBench(t, time.Minute)
	b.hook(Before, "10-x", `echo x >>ran`)
	runner := Runner{
		Dir: b.dir, Requests: b.requests(), Outcomes: filepath.Join(b.dir, "outcomes"), Timeout: time.Minute,
		Logger: slog.New(slog.DiscardHandler),
		Trust:  func(program string) error { return fmt.Errorf("%s is not root's", filepath.Base(program)) },
	}
	err := errors.Join(WriteRequest(runner.Requests, run(Before, "1")), runner.Run(t.Context(), Before))
	if err != nil {
		t.Fatal(err)
	}
	if got := b.until(run(Before, "1"), Failed); got.Hook != "10-x" || got.Text != "10-x is not root's" ||
		b.read("ran") != "" {
		t.Errorf("%+v, ran %q", got, b.read("ran"))
	}
}
