// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/quorumd/quorumd/agent/control"
	"github.com/quorumd/quorumd/agent/control/server"
	"github.com/quorumd/quorumd/agent/policy"
)

func TestCycleReturnsWhenTheHostIsBack(t *testing.T) {
	t.Parallel()
	d := maintenanceBackend(t)
	d.down = append(d.down[:4:4], d.back...)
	socket, _ := serve(t, d)
	golden(t, "cycle.golden", transcript(t, socket, "cycle --reason 'a new flag'", "cycle --reboot --yes",
		"cycle --command upgrade --reason 'a new etcd'"))
	if got := d.requests(); got != "restart for 4h0m0s, keep running false: a new flag; "+
		"reboot for 4h0m0s, keep running false: quorumctl cycle; "+
		"command upgrade for 4h0m0s, keep running false: a new etcd" {
		t.Errorf("asked %q", got)
	}
}

func TestCycleRunsACommandAndReturnsItsExitCode(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, line string
		code       int
		asked      string
	}{
		{"command", "cycle -- echo hello", 0, "; end"},
		{"command-fails", "cycle --reason 'new fan' -- sh -c 'echo half; exit 3'", 3, "; end"},
		{"command-keeps-down", "cycle --keep-down-on-failure -- sh -c 'exit 4'", 4, ""},
		{"command-killed", "cycle -- sh -c 'kill -9 $$'", 137, "; end"},
		{"command-odd", "cycle -- testdata/odd", 70, "; end"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			d := maintenanceBackend(t)
			d.down = d.down[3:]
			socket, _ := serve(t, d)
			golden(t, c.name+".golden", transcript(t, socket, c.line))
			if r := d.requests(); !strings.HasSuffix(r, c.asked) ||
				strings.Count(r, "end") != strings.Count(c.asked, "end") {
				t.Errorf("asked %q", r)
			}
		})
	}
}

func TestCycleKeepsItsOutputOffTheCommandsStdout(t *testing.T) {
	t.Parallel()
	socket, _ := serve(t, maintenanceBackend(t))
	r := quorumctl(t, socket, "cycle", "--", "sh", "-c", "echo data; echo note >&2")
	if r.code != exitOK || r.stdout != "data\n" || !strings.Contains(r.stderr, "note\n") ||
		!strings.Contains(r.stderr, "CYCLED") {
		t.Errorf("exit %d: %q %q", r.code, r.stdout, r.stderr)
	}
}

func TestCycleDoesNotEndAnotherUsersMaintenance(t *testing.T) {
	t.Parallel()
	d := scene(t, "overdue")
	socket, _ := serve(t, d)
	r := quorumctl(t, socket, "cycle", "--", "echo", "hello")
	want := "quorumctl: cannot cycle: maintenance of this host was already requested, at 2026-11-20 05:30:58Z by " +
		"uid 1000 (alice): swap the disk in slot 2\n"
	if r.code != exitFault || !strings.HasPrefix(r.stderr, want) || r.stdout != "" || d.requests() != "" {
		t.Errorf("exit %d, asked %q: %s%s", r.code, d.requests(), r.stdout, r.stderr)
	}
}

func TestCycleDoesNotEndAMaintenanceRequestedInTheSameMoment(t *testing.T) {
	t.Parallel()
	d := maintenanceBackend(t)
	d.onAsk = func(s *control.Status) {
		s.Maintenance = &control.Maintenance{
			Work: policy.WorkMaintenance, Reason: "other", By: "uid 7", Since: s.Time.Add(-time.Nanosecond),
			State: policy.RequestSafe,
		}
	}
	socket, _ := serve(t, d)
	r := quorumctl(t, socket, "cycle", "--", "echo", "hello")
	if r.code != exitFault || !strings.Contains(r.stderr, "was already requested") || r.stdout != "" ||
		strings.Contains(d.requests(), "end") {
		t.Errorf("exit %d, asked %q: %s%s", r.code, d.requests(), r.stdout, r.stderr)
	}
}

func TestInterruptBeforeTheCommandCancelsTheRequest(t *testing.T) {
	t.Parallel()
	d := maintenanceBackend(t)
	ctx, cancel := context.WithCancel(t.Context())
	d.onRead = func(look int, _ *control.Status) {
		if look == 4 {
			cancel()
		}
	}
	socket, _ := serve(t, d)
	var out, errOut bytes.Buffer
	code := run(ctx, []string{"--socket", socket, "cycle", "--", "echo", "hello"}, &out, &errOut)
	if code != exitFault || out.Len() > 0 || !strings.Contains(errOut.String(),
		"the command was not run, and the request is cancelled") {
		t.Errorf("exit %d: %s%s", code, &out, &errOut)
	}
	if got := d.requests(); !strings.HasSuffix(got, "; end") {
		t.Errorf("asked %q", got)
	}
}

// session starts quorumctl in a separate process with a separate terminal.
func session(t *testing.T, socket string, args ...string) (cmd *exec.Cmd, master *os.File) {
	t.Helper()
	master, terminal := openTerminal(t)
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	t.Cleanup(cancel)
	cmd = exec.CommandContext(ctx, self, append([]string{"--socket", socket}, args...)...)
	cmd.Env = append(os.Environ(), "QUORUMCTL_TEST_MAIN=1")
	cmd.Stdin, cmd.Stdout, cmd.Stderr = terminal, terminal, terminal
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	terminal.Close()
	return cmd, master
}

// follow reads the output of a session and calls a function when a text first appears.
func follow(master io.Reader, when string, act func()) string {
	var seen strings.Builder
	buffer := make([]byte, 4096)
	for {
		n, err := master.Read(buffer)
		seen.Write(buffer[:n])
		if act != nil && strings.Contains(seen.String(), when) {
			act()
			act = nil
		}
		if err != nil { // the session is over
			return seen.String()
		}
	}
}

func TestCtrlCGoesToTheCommandAndTheHostIsBroughtBack(t *testing.T) {
	t.Parallel()
	d := maintenanceBackend(t)
	d.down = d.down[3:]
	socket, _ := serve(t, d)
	cmd, master := session(t, socket, "cycle", "--", "sh", "-c",
		`trap "echo caught; exit 7" INT; echo rea""dy; while :; do sleep 0.1; done`)
	seen := follow(master, "ready", func() { _, _ = master.Write([]byte{3}) })
	_ = cmd.Wait()
	if code := cmd.ProcessState.ExitCode(); code != 7 || !strings.Contains(seen, "caught") ||
		!strings.Contains(seen, "CYCLED") || !strings.HasSuffix(d.requests(), "; end") {
		t.Errorf("exit %d, asked %q: %s", code, d.requests(), seen)
	}
}

func TestSIGTERMReachesTheCommandAndTheHostIsBroughtBack(t *testing.T) {
	t.Parallel()
	d := maintenanceBackend(t)
	d.down = d.down[3:]
	socket, _ := serve(t, d)
	cmd, master := session(t, socket, "cycle", "--", "sh", "-c", `echo rea""dy; exec sleep 60`)
	seen := follow(master, "ready", func() { _ = cmd.Process.Signal(syscall.SIGTERM) })
	_ = cmd.Wait()
	if code := cmd.ProcessState.ExitCode(); code != 128+15 || !strings.Contains(seen, "CYCLED") ||
		!strings.HasSuffix(d.requests(), "; end") {
		t.Errorf("exit %d, asked %q: %s", code, d.requests(), seen)
	}
}

func TestClosedTerminalCancelsTheRequest(t *testing.T) {
	t.Parallel()
	d := maintenanceBackend(t)
	d.down = d.down[:1]
	socket, _ := serve(t, d)
	cmd, master := session(t, socket, "cycle", "--", "echo", "hello")
	follow(master, "CYCLE_QUEUED", func() { master.Close() })
	_ = cmd.Wait()
	if got := d.requests(); !strings.HasSuffix(got, "; end") {
		t.Errorf("asked %q", got)
	}
}

func TestHostIsBroughtBackAfterCommandRestartsQuorumd(t *testing.T) {
	t.Parallel()
	d := maintenanceBackend(t)
	d.down = d.down[4:]
	socket, stop := serve(t, d)
	d.mu.Lock()
	d.onRead = func(look int, _ *control.Status) {
		if look == 3 { // this read reports that etcd is stopped, so the command runs next
			go stop()
		}
	}
	d.mu.Unlock()
	out := &screen{}
	out.wrote = func(int) {
		if strings.Contains(out.text.String(), "quorumd does not answer") {
			out.wrote = func(int) {}
			ctx, end := context.WithCancel(context.Background())
			ended := make(chan error, 1)
			go func() {
				ended <- server.New(server.Options{Socket: socket, Backend: d}).Serve(ctx)
			}()
			t.Cleanup(func() {
				end()
				if err := <-ended; err != nil {
					t.Error(err)
				}
			})
		}
	}
	code := run(t.Context(), []string{
		"--socket", socket, "cycle", "--", "sh", "-c",
		"while test -e " + socket + "; do sleep 0.1; done",
	}, io.Discard, out)
	if code != exitOK || !strings.Contains(out.text.String(), "CYCLED") || strings.Count(d.requests(), "end") != 1 {
		t.Errorf("exit %d, asked %q: %s", code, d.requests(), out.text.String())
	}
}

func TestFailureToBringHostBackIsReported(t *testing.T) {
	t.Parallel()
	d := maintenanceBackend(t)
	d.down = d.down[4:]
	d.onEnd = func() error {
		return &control.Error{Status: 500, Code: control.CodeInternal, Message: "cannot end: the disk is full"}
	}
	socket, _ := serve(t, d)
	r := quorumctl(t, socket, "cycle", "--", "true")
	want := "quorumctl: cannot bring this host back: cannot end: the disk is full\n" +
		"→ this host stays in maintenance; to end it: quorumctl maintenance off\n"
	if r.code != exitFault || !strings.HasSuffix(r.stderr, want) {
		t.Errorf("exit %d: %s", r.code, r.stderr)
	}
}

func TestDefaultReasonIsOneShortLine(t *testing.T) {
	t.Parallel()
	if got := defaultReason([]string{"sh", "-c", "a\nb"}); got != "to run sh -c a b" {
		t.Errorf("%q", got)
	}
	if got := []rune(defaultReason([]string{"sh", "-c", strings.Repeat("é ", 500)})); len(got) > control.MaxReason {
		t.Errorf("%d characters", len(got))
	}
}
