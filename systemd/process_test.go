// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package systemd

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/procfs"
	"golang.org/x/sys/unix"
)

// options returns options for a child of that role, in temporary directories.
func options(t *testing.T, role string, args ...string) ProcessOptions {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	return ProcessOptions{
		Name: "child", Argv: append([]string{exe}, args...), Env: append(os.Environ(), roleVariable+"="+role),
		Dir: filepath.Join(dir, "run"), LogFile: filepath.Join(dir, "child.log"),
		StopTimeout: time.Minute, Logger: slog.New(slog.DiscardHandler),
	}
}

// open creates a Process and cleans up after the test.
func open(t *testing.T, o ProcessOptions) *Process {
	t.Helper()
	p, err := NewProcess(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		p.Close()
		killAll(t, o)
	})
	return p
}

// killAll ends the children with the token of the record. It does not use the code under test to find them, because a
// bug there could make it kill any process of the machine.
func killAll(t *testing.T, o ProcessOptions) {
	r := readRecord(t, o)
	if r.Token == "" {
		return
	}
	eventually(t, "the process group is gone", func() bool {
		left := childrenWith(t, r.Token)
		for _, pid := range left {
			_ = unix.Kill(pid, unix.SIGKILL)
		}
		return len(left) == 0
	})
	var ws unix.WaitStatus
	if r.PID > 1 {
		_, _ = unix.Wait4(r.PID, &ws, unix.WNOHANG, nil)
	}
}

// childrenWith returns the live processes, except this one, that run this very test binary, play a role, and have the
// token in their environment.
func childrenWith(t *testing.T, token string) []int {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	all, err := procfs.AllProcs()
	if err != nil {
		t.Fatal(err)
	}
	var pids []int
	for _, proc := range all {
		if proc.PID <= 1 || proc.PID == os.Getpid() {
			continue
		}
		if path, err := os.Readlink(fmt.Sprintf("/proc/%d/exe", proc.PID)); err != nil || path != exe {
			continue
		}
		env, err := os.ReadFile(fmt.Sprintf("/proc/%d/environ", proc.PID))
		text := "\x00" + string(env)
		if err == nil && strings.Contains(text, "\x00"+tokenVariable+"="+token+"\x00") &&
			strings.Contains(text, "\x00"+roleVariable+"=") {
			pids = append(pids, proc.PID)
		}
	}
	return pids
}

func readRecord(t *testing.T, o ProcessOptions) record {
	t.Helper()
	var r record
	data, err := os.ReadFile(filepath.Join(o.Dir, o.Name+".state"))
	if errors.Is(err, os.ErrNotExist) {
		return r
	}
	if err == nil {
		err = json.Unmarshal(data, &r)
	}
	if err != nil {
		t.Error(err)
	}
	return r
}

func writeRecord(t *testing.T, p *Process, r record) {
	t.Helper()
	if err := p.save(&r); err != nil {
		t.Fatal(err)
	}
}

func status(t *testing.T, p *Process) Status {
	t.Helper()
	st, err := p.Status(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return st
}

// do runs verb and fails the test if it returns an error or takes long.
func do(t *testing.T, verb func(context.Context) error) {
	t.Helper()
	began := time.Now()
	if err := verb(t.Context()); err != nil {
		t.Fatal(err)
	}
	if took := time.Since(began); took > slack {
		t.Errorf("it returned only after %v", took)
	}
}

// reaches waits for a state and returns the status with it.
func reaches(t *testing.T, p *Process, want State) Status {
	t.Helper()
	var st Status
	eventually(t, "the state is "+want.String(), func() bool { st = status(t, p); return st.State == want })
	return st
}

func readLog(t *testing.T, o ProcessOptions) string {
	t.Helper()
	text, err := os.ReadFile(o.LogFile)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		t.Fatal(err)
	}
	return string(text)
}

// start starts the process and waits until the child reports that it is ready.
func start(t *testing.T, p *Process) Status {
	t.Helper()
	before := strings.Count(readLog(t, p.o), "ready\n")
	do(t, p.Start)
	eventually(t, "the child is ready", func() bool { return strings.Count(readLog(t, p.o), "ready\n") > before })
	return status(t, p)
}

// grandchildOf returns the PID that the role "parent" writes to the log, before or after its child's own line.
func grandchildOf(t *testing.T, o ProcessOptions) (pid int) {
	t.Helper()
	eventually(t, "the parent reports its child", func() bool {
		_, after, found := strings.Cut(readLog(t, o), "grandchild ")
		number, _, whole := strings.Cut(after, "\n")
		var err error
		pid, err = strconv.Atoi(number)
		return found && whole && err == nil
	})
	return pid
}

func alive(t *testing.T, pid int) bool {
	t.Helper()
	stat, err := statOf(pid)
	if err != nil {
		t.Fatal(err)
	}
	return stat != nil && !isDead(stat)
}

func TestAProcessRunsInItsOwnSessionAndItsOutputIsKept(t *testing.T) {
	t.Parallel()
	p := open(t, options(t, "talker"))
	if st := status(t, p); st.State != Inactive || st.PID != 0 || st.Result != "success" || !st.Installed() {
		t.Errorf("before the first start: %+v", st)
	}
	st := start(t, p)
	if st.State != Active || st.PID == 0 || st.Job != "" || st.LastJob != "done" || st.ExitCode != -1 ||
		st.Result != "success" {
		t.Errorf("after the start: %+v", st)
	}
	if st.Since <= 0 || st.Since > 15*time.Second {
		t.Errorf("active for %v", st.Since)
	}
	stat, err := statOf(st.PID)
	if err != nil || stat == nil {
		t.Fatal(stat, err)
	}
	if stat.Session != st.PID || stat.PGRP != st.PID {
		t.Errorf("session %d and group %d of process %d", stat.Session, stat.PGRP, st.PID)
	}
	want := "to stdout, stdin has 0 bytes, error <nil>\nto stderr\nin /\nready\n"
	if got := readLog(t, p.o); got != want {
		t.Errorf("the log is %q, want %q", got, want)
	}
}

func TestStartAndStopMayBeRepeated(t *testing.T) {
	t.Parallel()
	p := open(t, options(t, "sleeper"))
	do(t, p.Stop)
	if st := status(t, p); st.State != Inactive || st.LastJob != "done" {
		t.Errorf("stopped before it ran: %+v", st)
	}
	first := start(t, p)
	do(t, p.Start)
	if st := status(t, p); st.PID != first.PID || st.LastJob != "done" {
		t.Errorf("started twice: %+v, then %+v", first, st)
	}
	do(t, p.Stop)
	do(t, p.Stop)
	st := reaches(t, p, Inactive)
	if st.PID != 0 || st.Result != "success" || st.Signal != "SIGTERM" || st.ExitCode != -1 || st.LastJob != "done" ||
		st.Job != "" {
		t.Errorf("after the stop: %+v", st)
	}
	do(t, p.Stop)
	if again := start(t, p); again.PID == first.PID || again.Result != "success" || again.Signal != "" {
		t.Errorf("started again: %+v", again)
	}
}

func TestTheEndOfAProcessIsReported(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		role, arg string
		signal    unix.Signal
		state     State
		result    string
		exitCode  int
		named     string
	}{
		{"exit", "0", 0, Inactive, "success", 0, ""},
		{"exit", "3", 0, Failed, "exit-code", 3, ""},
		{"sleeper", "", unix.SIGKILL, Failed, "signal", -1, "SIGKILL"},
		{"sleeper", "", unix.SIGTERM, Inactive, "success", -1, "SIGTERM"},
	} {
		t.Run(fmt.Sprint(c.role, c.arg, c.named), func(t *testing.T) {
			t.Parallel()
			p := open(t, options(t, c.role, c.arg))
			do(t, p.Start)
			if c.signal != 0 {
				send(t, status(t, p).PID, c.signal)
			}
			st := reaches(t, p, c.state)
			if st.Result != c.result || st.ExitCode != c.exitCode || st.Signal != c.named || st.PID != 0 {
				t.Errorf("%+v", st)
			}
			do(t, p.Stop)
			if st := status(t, p); st.State != c.state || st.Result != c.result {
				t.Errorf("a stop after the end changed it to %+v", st)
			}
		})
	}
}

func TestAProcessWithoutItsMainThreadStillRuns(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, result, signal string }{
		{"child", "signal", "SIGKILL"},
		{"adopted", "unknown", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			o := options(t, "headless")
			if c.name == "adopted" {
				a := startAgent(t, o)
				a.ask("start")
				a.kill()
			}
			p := open(t, o)
			do(t, p.Start)
			pid := status(t, p).PID
			eventually(t, "the main thread is a zombie", func() bool {
				stat, err := statOf(pid)
				return err == nil && stat != nil && stat.State == "Z"
			})
			if st := status(t, p); st.State != Active || st.PID != pid {
				t.Errorf("%+v", st)
			}
			send(t, pid, unix.SIGKILL)
			if st := reaches(t, p, Failed); st.Result != c.result || st.Signal != c.signal {
				t.Errorf("%+v", st)
			}
		})
	}
}

func TestAStopIsRecordedBeforeItsSignal(t *testing.T) {
	t.Parallel()
	o := options(t, "witness")
	o.Argv = append(o.Argv, filepath.Join(o.Dir, o.Name+".state"))
	p := open(t, o)
	start(t, p)
	do(t, p.Stop)
	reaches(t, p, Inactive)
	if log := readLog(t, o); !strings.Contains(log, `"state":"deactivating"`) ||
		!strings.Contains(log, `"job":"stop"`) {
		t.Errorf("at SIGTERM the record was %s", log)
	}
}

func TestAProcessThatIgnoresSIGTERMIsKilledAfterTheDeadline(t *testing.T) {
	t.Parallel()
	o := options(t, "stubborn")
	o.StopTimeout = 300 * time.Millisecond
	p := open(t, o)
	pid := start(t, p).PID
	began := time.Now()
	do(t, p.Stop)
	if st := status(t, p); time.Since(began) < o.StopTimeout &&
		(st.State != Deactivating || st.Job != "stop" || st.PID != pid) {
		t.Errorf("before the deadline: %+v", st)
	}
	// Status is not called here: the escalation to SIGKILL must not depend on it.
	eventually(t, "the process is dead", func() bool { return !alive(t, pid) })
	if took := time.Since(began); took < o.StopTimeout {
		t.Errorf("killed after %v, before the deadline of %v", took, o.StopTimeout)
	}
	st := reaches(t, p, Inactive)
	if st.Result != "timeout" || st.Signal != "SIGKILL" || st.LastJob != "done" {
		t.Errorf("%+v", st)
	}
}

func TestAStopReachesTheWholeProcessGroup(t *testing.T) {
	t.Parallel()
	o := options(t, "parent")
	o.StopTimeout = 300 * time.Millisecond
	p := open(t, o)
	start(t, p)
	grandchild := grandchildOf(t, o)
	do(t, p.Stop)
	st := reaches(t, p, Inactive)
	eventually(t, "the killed grandchild is dead", func() bool { return !alive(t, grandchild) })
	// The leader ended at SIGTERM, and the grandchild had to be killed.
	if st.Signal != "SIGTERM" || st.Result != "timeout" {
		t.Errorf("%+v", st)
	}
}

func TestAProcessThatLeftTheGroupDoesNotDelayAStop(t *testing.T) {
	t.Parallel()
	o := options(t, "parent", "apart")
	p := open(t, o)
	start(t, p)
	grandchild := grandchildOf(t, o)
	do(t, p.Stop)
	if st := reaches(t, p, Inactive); st.Result != "success" || !alive(t, grandchild) {
		t.Errorf("%+v, grandchild alive: %v", st, alive(t, grandchild))
	}
}

func TestAStartAfterACrashFirstEndsTheOldGroup(t *testing.T) {
	t.Parallel()
	o := options(t, "parent")
	o.StopTimeout = 300 * time.Millisecond
	p := open(t, o)
	first := start(t, p)
	grandchild := grandchildOf(t, o)
	send(t, first.PID, unix.SIGKILL)
	reaches(t, p, Failed)
	do(t, p.Start)
	if st := status(t, p); st.State == Deactivating && st.Job != "start" {
		t.Errorf("%+v", st)
	}
	second := reaches(t, p, Active)
	if alive(t, grandchild) || second.PID == first.PID || second.LastJob != "done" {
		t.Errorf("grandchild alive %v, first %+v, second %+v", alive(t, grandchild), first, second)
	}
}

func TestARestartWaitsForTheOldProcessToEnd(t *testing.T) {
	t.Parallel()
	o := options(t, "stubborn")
	o.StopTimeout = 300 * time.Millisecond
	p := open(t, o)
	first := start(t, p)
	do(t, p.Restart)
	if st := status(t, p); st.State == Deactivating && (st.Job != "restart" || st.PID != first.PID) {
		t.Errorf("during the restart: %+v", st)
	}
	second := reaches(t, p, Active)
	if alive(t, first.PID) || second.PID == first.PID || second.LastJob != "done" || second.Job != "" {
		t.Errorf("first %+v, then %+v", first, second)
	}
}

func TestAStartDuringAStopIsQueuedAndAnotherStopCancelsIt(t *testing.T) {
	t.Parallel()
	o := options(t, "stubborn")
	o.StopTimeout = 500 * time.Millisecond
	p := open(t, o)
	first := start(t, p)
	do(t, p.Stop)
	do(t, p.Start)
	if r := readRecord(t, o); r.State != Deactivating || r.Job != "start" {
		t.Fatalf("%+v", r)
	}
	second := reaches(t, p, Active)
	if second.PID == first.PID || alive(t, first.PID) {
		t.Errorf("first %+v, then %+v", first, second)
	}
	eventually(t, "the second child is ready", func() bool { return strings.Count(readLog(t, o), "ready\n") == 2 })
	do(t, p.Stop)
	do(t, p.Start)
	do(t, p.Stop)
	if st := reaches(t, p, Inactive); st.LastJob != "done" || st.Job != "" || st.PID != 0 {
		t.Errorf("%+v", st)
	}
}

func TestAClosedProcessLeavesTheChildAlone(t *testing.T) {
	t.Parallel()
	o := options(t, "sleeper")
	p := open(t, o)
	st := start(t, p)
	if err := p.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := p.Status(t.Context()); !errors.Is(err, ErrClosed) {
		t.Errorf("Status after Close: %v", err)
	}
	if err := p.Close(); err != nil {
		t.Errorf("closed twice: %v", err)
	}
	next := open(t, o)
	if again := status(t, next); again.State != Active || again.PID != st.PID {
		t.Errorf("%+v, then %+v", st, again)
	}
}
