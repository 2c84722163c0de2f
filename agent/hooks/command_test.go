// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package hooks

import (
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// program writes a shell script into commands.d.
func (b *bench) program(name, script string) {
	b.t.Helper()
	if err := os.MkdirAll(filepath.Join(b.dir, namedDirs()[Command]), 0o755); err != nil {
		b.t.Fatal(err)
	}
	path := filepath.Join(b.dir, namedDirs()[Command], name)
	if err := os.WriteFile(path, []byte("#!/bin/sh\ncd "+b.dir+"\n"+script+"\n"), 0o755); err != nil {
		b.t.Fatal(err)
	}
}

func command(b *bench, id, name string, within time.Duration) Run {
	b.t.Helper()
	var now unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &now); err != nil {
		b.t.Fatal(err)
	}
	return Run{
		When: Command, ID: id, Program: name, Until: time.Duration(now.Nano()) + within, Work: "command",
		Reason: "a fix", By: "root",
	}
}

func TestCommandRunsTheOneProgramOfItsNameOnce(t *testing.T) {
	t.Parallel()
	b := newBench(t, time.Minute)
	b.program("upgrade", `echo x >>count; env | grep QUORUMD_ | sort >env`)
	b.program("other", `echo other >>count`)
	b.hook(Before, "10-hook", `echo hook >>count`)
	r := command(b, "1", "upgrade", time.Minute)
	for range 3 {
		b.start(r)
		b.until(r, Done)
	}
	if err := b.launcher.launch(t.Context(), r); err != nil {
		t.Fatal(err)
	}
	b.until(r, Done)
	if got := b.read("count"); got != "x\n" {
		t.Errorf("ran:\n%s", got)
	}
	if got, want := b.read("env"),
		"QUORUMD_BY=root\nQUORUMD_COMMAND=upgrade\nQUORUMD_HOST=n1\nQUORUMD_REASON=a "+
			"fix\nQUORUMD_WHEN=command\nQUORUMD_WORK=command\n"; got != want {
		t.Errorf("the environment was\n%s", got)
	}
}

func TestFailedCommandReportsItsError(t *testing.T) {
	t.Parallel()
	b := newBench(t, time.Minute)
	b.program("upgrade", "echo 'no space left' >&2\nexit 7")
	r := command(b, "1", "upgrade", time.Minute)
	b.start(r)
	if got := b.until(r, Failed); got.Hook != "upgrade" || got.Text != "exit status 7: no space left" {
		t.Errorf("%+v", got)
	}
}

func TestCommandHasATimeLimitOfItsOwn(t *testing.T) {
	t.Parallel()
	b := newBench(t, 300*time.Millisecond) // limit of hooks; that of commands is ten times as long
	b.program("short", `sleep 1`)
	r := command(b, "1", "short", time.Minute)
	b.start(r)
	b.until(r, Done)
	b.program("long", `sleep 60`)
	r = command(b, "2", "long", time.Minute)
	b.start(r)
	if got := b.until(r, Failed); got.Text != "it took longer than 3s and was killed" {
		t.Errorf("%+v", got)
	}
}

func TestInvalidCommandIsNeitherFoundNorRun(t *testing.T) {
	t.Parallel()
	b := newBench(t, time.Minute)
	if err := b.launcher.Find("upgrade"); err == nil || !strings.Contains(err.Error(), "there is no ") {
		t.Errorf("without a directory: %v", err)
	}
	b.program("upgrade", `echo x >>ran`)
	b.program("x.sh", `echo x >>ran`)
	b.program("open", `echo x >>ran`)
	b.program("text", `echo x >>ran`)
	for name, mode := range map[string]os.FileMode{"open": 0o777, "text": 0o644} {
		if err := os.Chmod(filepath.Join(b.dir, namedDirs()[Command], name), mode); err != nil {
			t.Fatal(err)
		}
	}
	if err := b.launcher.Find("upgrade"); err != nil {
		t.Error(err)
	}
	for name, want := range map[string]string{
		"": "is not a valid", "../before.d/x": "is not a valid", "a/b": "is not a valid", "x.sh": "is not a valid",
		"-rf": "is not a valid", "a b": "is not a valid", "a\n": "is not a valid",
		strings.Repeat("a", 65): "is not a valid", "missing": "there is no ", "open": "chmod go-w",
		"text": "chmod +x",
	} {
		if err := b.launcher.Find(name); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q is found: %v", name, err)
		}
		r := command(b, "of "+name, name, time.Minute)
		if got, err := b.launcher.State(t.Context(), r); err != nil || got.State != Failed ||
			!strings.Contains(got.Text, want) {
			t.Errorf("%q: %+v, %v", name, got, err)
		}
		// The runner checks the request again, because it must not rely on the agent's check.
		if err := write(requestPath(b.requests(), Command), 0o640,
			request{ID: r.ID, Program: name, Until: r.Until}); err != nil {
			t.Fatal(err)
		}
		b.eventually("the previous runner has ended", func() bool {
			held, err := locked(b.launcher.outcomes, Command)
			return err == nil && !held
		})
		if err := b.launcher.launch(t.Context(), r); err != nil {
			t.Fatal(err)
		}
		b.eventually("the command is refused", func() bool {
			got, err := b.launcher.outcomeOf(r)
			return err == nil && got.State == Failed
		})
	}
	if err := os.Chmod(filepath.Join(b.dir, namedDirs()[Command]), 0o777); err != nil {
		t.Fatal(err)
	}
	if err := b.launcher.Find("upgrade"); err == nil || !strings.Contains(err.Error(), "chmod go-w") {
		t.Errorf("found in a world-writable directory: %v", err)
	}
	if got := b.read("ran"); got != "" {
		t.Error("an invalid command ran")
	}
}

func TestCommandThatDoesNotStartInTimeNeverStarts(t *testing.T) {
	t.Parallel()
	b := newBench(t, time.Minute)
	b.program("upgrade", `echo x >>ran`)
	r := command(b, "1", "upgrade", -time.Millisecond)
	b.start(r)
	if got := b.until(r, Failed); !strings.Contains(got.Text, "its deadline to start has passed") {
		t.Errorf("%+v", got)
	}
	if b.read("ran") != "" {
		t.Error("the command ran")
	}
}

func TestCommandEndsWithItsRunner(t *testing.T) {
	t.Parallel()
	b := newBench(t, time.Minute)
	b.program("long", `echo $PPID >parent; echo $$ >pid; exec sleep 60`)
	r := command(b, "1", "long", time.Minute)
	b.start(r)
	b.eventually("it runs", func() bool { return strings.HasSuffix(b.read("pid"), "\n") })
	parent, _ := strconv.Atoi(strings.TrimSpace(b.read("parent")))
	pid, _ := strconv.Atoi(strings.TrimSpace(b.read("pid")))
	if parent <= 1 || pid <= 1 || unix.Kill(parent, unix.SIGKILL) != nil {
		t.Fatalf("cannot kill PID %d", parent)
	}
	if got := b.until(r, Failed); got.Hook != "long" || !strings.Contains(got.Text, "without a result") {
		t.Errorf("%+v", got)
	}
	b.eventually("the program is gone, too", func() bool { return unix.Kill(pid, 0) != nil })
}

func TestCommandMustNotBeALinkAndMustBelongToRoot(t *testing.T) {
	t.Parallel()
	b := newBench(t, time.Minute)
	b.program("upgrade", `echo x >>ran`)
	dir := filepath.Join(b.dir, namedDirs()[Command])
	if err := os.Symlink(filepath.Join(dir, "upgrade"), filepath.Join(dir, "link")); err != nil {
		t.Fatal(err)
	}
	if err := b.launcher.Find("link"); err == nil || !strings.Contains(err.Error(), "is a symbolic link") {
		t.Errorf("a link is found: %v", err)
	}
	for uid, trusts := range map[int]bool{0: true, os.Geteuid(): true, 12345: false} {
		info := owned{uid}
		if err := checkOwner("/x", info, os.Geteuid()); (err == nil) != trusts ||
			err != nil && !strings.Contains(err.Error(), "chown root:root") {
			t.Errorf("a file of user %d: %v", uid, err)
		}
	}
	if os.Geteuid() != 0 {
		return // only root can change the owner
	}
	for _, path := range []string{filepath.Join(dir, "upgrade"), dir} {
		if err := os.Chown(path, 12345, 12345); err != nil {
			t.Fatal(err)
		}
		if err := b.launcher.Find("upgrade"); err == nil ||
			!strings.Contains(err.Error(), path+" is not owned by root") {
			t.Errorf("%s belongs to another user: %v", path, err)
		}
		if err := os.Chown(path, 0, 0); err != nil {
			t.Fatal(err)
		}
	}
}

// owned is the FileInfo of a file that the user with the ID uid owns.
type owned struct{ uid int }

func (owned) Name() string       { return "x" }
func (owned) Size() int64        { return 0 }
func (owned) Mode() os.FileMode  { return 0o755 }
func (owned) ModTime() time.Time { return time.Time{} }
func (owned) IsDir() bool        { return false }
func (o owned) Sys() any         { return &syscall.Stat_t{Uid: uint32(o.uid)} }

func TestLogCallsACommandACommandNotAHook(t *testing.T) {
	t.Parallel()
	b := newBench(t, time.Minute)
	b.program("upgrade", `exit 0`)
	if err := write(requestPath(b.requests(), Command), 0o640, request{ID: "1", Program: "upgrade"}); err != nil {
		t.Fatal(err)
	}
	var log strings.Builder
	runner := Runner{
		Dir: b.dir, Requests: b.requests(), Outcomes: b.launcher.outcomes, Command: time.Minute, Output: io.Discard,
		Logger: slog.New(slog.NewTextHandler(&log, nil)),
	}
	if err := runner.Run(t.Context(), Command); err != nil {
		t.Fatal(err)
	}
	if got := log.String(); !strings.Contains(got, `msg="program done" kind=command when=command program=upgrade`) ||
		strings.Contains(got, "hook") {
		t.Errorf("the log says:\n%s", got)
	}
}
