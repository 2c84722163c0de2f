// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package systemd

import (
	"bufio"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/procfs"
	"golang.org/x/sys/unix"
)

// agent is a separate process that manages the same child as the test.
type agent struct {
	t   *testing.T
	cmd *exec.Cmd
	in  io.WriteCloser
	out *bufio.Reader
}

func startAgent(t *testing.T, o ProcessOptions) *agent {
	t.Helper()
	config, err := json.Marshal(agentConfig{
		Name: o.Name, Argv: o.Argv, Env: o.Env, Dir: o.Dir,
		LogFile: o.LogFile, StopTimeout: o.StopTimeout,
	})
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(o.Argv[0], string(config))
	cmd.Env = append(os.Environ(), roleVariable+"=agent")
	in, inErr := cmd.StdinPipe()
	out, outErr := cmd.StdoutPipe()
	if inErr != nil || outErr != nil {
		t.Fatal(inErr, outErr)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	a := &agent{t: t, cmd: cmd, in: in, out: bufio.NewReader(out)}
	t.Cleanup(a.kill)
	return a
}

func (a *agent) tell(verb string) {
	a.t.Helper()
	if _, err := fmt.Fprintln(a.in, verb); err != nil {
		a.t.Fatal(err)
	}
}

func (a *agent) answer() string {
	a.t.Helper()
	line, err := a.out.ReadString('\n')
	if err != nil {
		a.t.Fatal(err)
	}
	return strings.TrimSpace(line)
}

func (a *agent) ask(verb string) {
	a.t.Helper()
	a.tell(verb)
	if got := a.answer(); got != "ok" {
		a.t.Fatalf("%s: %s", verb, got)
	}
}

// kill ends the agent with SIGKILL.
func (a *agent) kill() {
	_ = a.cmd.Process.Kill()
	_ = a.cmd.Wait()
}

func TestAKilledAgentLeavesTheProcessRunningForTheNextAgent(t *testing.T) {
	t.Parallel()
	o := options(t, "sleeper")
	a := startAgent(t, o)
	a.ask("start")
	a.kill()

	p := open(t, o)
	st := status(t, p)
	if st.State != Active || st.PID == 0 || !alive(t, st.PID) || st.LastJob != "done" {
		t.Fatalf("after the agent was killed: %+v", st)
	}
	do(t, p.Start)
	if again := status(t, p); again.PID != st.PID {
		t.Errorf("a second child was started: %+v, then %+v", st, again)
	}
	do(t, p.Stop)
	// The process is not a child of the test binary, so its end is noticed, but its exit status is unknown.
	if end := reaches(t, p, Inactive); end.Result != "success" || end.ExitCode != -1 || end.Signal != "" {
		t.Errorf("after the stop: %+v", end)
	}
	if alive(t, st.PID) {
		t.Error("it is still alive")
	}
}

func TestAnAgentKilledBeforeTheForkLeavesAStartThatFailed(t *testing.T) {
	t.Parallel()
	o := options(t, "sleeper")
	log := o.LogFile
	o.LogFile += ".pipe" // opening it blocks, so that the agent stays right before the fork
	if err := unix.Mkfifo(o.LogFile, 0o600); err != nil {
		t.Fatal(err)
	}
	a := startAgent(t, o)
	a.tell("start")
	eventually(t, "the start is recorded", func() bool { return readRecord(t, o).State == Activating })
	if r := readRecord(t, o); r.Token == "" || r.PID != 0 || r.Job != "start" {
		t.Errorf("%+v", r)
	}
	a.kill()
	o.LogFile = log
	p := open(t, o)
	if st := status(t, p); st.State != Failed || st.Result != "resources" || st.LastJob != "failed" {
		t.Errorf("%+v", st)
	}
	start(t, p)
}

func TestAProcessThatEndsUnobservedIsFailed(t *testing.T) {
	t.Parallel()
	o := options(t, "sleeper")
	a := startAgent(t, o)
	a.ask("start")
	a.kill()
	send(t, readRecord(t, o).PID, unix.SIGKILL)
	p := open(t, o)
	if st := reaches(t, p, Failed); st.Result != "unknown" || st.ExitCode != -1 || st.PID != 0 {
		t.Errorf("%+v", st)
	}
}

func TestAZombieOfAnotherAgentIsDead(t *testing.T) {
	t.Parallel()
	o := options(t, "exit", "3")
	a := startAgent(t, o)
	a.ask("start") // the agent does not check again, so the child is not reaped
	eventually(t, "the child is a zombie", func() bool {
		stat, err := statOf(readRecord(t, o).PID)
		return err == nil && stat != nil && isDead(stat)
	})
	p := open(t, o)
	if st := status(t, p); st.State != Failed || st.Result != "unknown" {
		t.Errorf("%+v", st)
	}
}

func TestAnotherProcessValueOfTheSameAgentLearnsTheExitCode(t *testing.T) {
	t.Parallel()
	o := options(t, "exit", "3")
	p := open(t, o)
	do(t, p.Start)
	p.Close()
	if st := reaches(t, open(t, o), Failed); st.ExitCode != 3 {
		t.Errorf("%+v", st)
	}
}

func TestAStopContinuesAfterItsAgentIsKilled(t *testing.T) {
	t.Parallel()
	o := options(t, "stubborn")
	o.StopTimeout = time.Second
	a := startAgent(t, o)
	a.ask("start")
	eventually(t, "the child ignores SIGTERM", func() bool { return strings.Contains(readLog(t, o), "ready") })
	a.ask("stop")
	a.kill()
	pid := readRecord(t, o).PID
	if !alive(t, pid) {
		t.Fatal("it did not ignore SIGTERM")
	}
	o.StopTimeout = time.Hour // the recorded deadline counts, not this one
	p := open(t, o)
	if st := status(t, p); st.State != Deactivating || st.Job != "stop" {
		t.Errorf("taken over: %+v", st)
	}
	if st := reaches(t, p, Inactive); st.Result != "timeout" || alive(t, pid) {
		t.Errorf("%+v", st)
	}
}

func TestARestartContinuesAfterItsAgentIsKilled(t *testing.T) {
	t.Parallel()
	o := options(t, "stubborn")
	o.StopTimeout = time.Second
	a := startAgent(t, o)
	a.ask("start")
	eventually(t, "the child ignores SIGTERM", func() bool { return strings.Contains(readLog(t, o), "ready") })
	first := readRecord(t, o).PID
	a.ask("restart")
	a.kill()
	p := open(t, o)
	if st := reaches(t, p, Active); st.PID == first || st.LastJob != "done" {
		t.Errorf("%+v", st)
	}
}

func TestAgentsStartingAtOnceStartOneProcess(t *testing.T) {
	t.Parallel()
	o := options(t, "sleeper", "only-one-"+rand.Text())
	agents := make([]*agent, 6)
	for i := range agents {
		agents[i] = startAgent(t, o)
	}
	for _, a := range agents {
		a.tell("start")
	}
	for _, a := range agents {
		if got := a.answer(); got != "ok" {
			t.Errorf("start: %s", got)
		}
	}
	st := status(t, open(t, o))
	for _, a := range agents {
		a.tell("status")
		if got, want := a.answer(), fmt.Sprint("active ", st.PID, " <nil>"); got != want {
			t.Errorf("an agent sees %q, not %q", got, want)
		}
	}
	var running []int
	all, err := procfs.AllProcs()
	if err != nil {
		t.Fatal(err)
	}
	for _, proc := range all {
		if line, err := proc.CmdLine(); err == nil && len(line) == 2 && line[0] == o.Argv[0] && line[1] == o.Argv[1] {
			running = append(running, proc.PID)
		}
	}
	if len(running) != 1 || running[0] != st.PID {
		t.Errorf("processes %v run, the record has %d", running, st.PID)
	}
	for _, pid := range running {
		_ = unix.Kill(pid, unix.SIGKILL)
	}
}
