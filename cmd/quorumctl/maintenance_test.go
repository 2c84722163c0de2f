// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/quorumd/quorumd/agent/control"
	"github.com/quorumd/quorumd/agent/control/server"
)

// worker is a backend whose host goes down and comes back step by step.
func worker(t *testing.T) *desk {
	t.Helper()
	d := scene(t, "steady")
	d.status.Reasons = []control.Reason{{Code: "IDLE", Text: "this host is a voter; nothing to do"}}
	d.down = []moment{
		{control.MaintenanceWaiting, "CYCLE_QUEUED", "n3 has an older request and goes first"},
		{control.MaintenanceWaiting, "SETTLING", "3.2s of the cooldown of 1m remain"},
		{control.MaintenanceWaiting, "SETTLING", "1.1s of the cooldown of 1m remain"},
		{control.MaintenanceStopping, "STOPPING", "etcd is stopping"},
		{control.MaintenanceSafe, "IN_MAINTENANCE", "by root: new fan"},
	}
	d.back = []moment{
		{control.MaintenanceReturning, "RETURNING", "it does not serve yet"},
		{control.MaintenanceReturning, "RETURNING", "it has served for 4s of 10s"},
		{"", control.CodeCycled, "the host is back"},
	}
	return d
}

func TestMaintenanceReturnsWhenTheMachineIsSafeToTouchAndWhenItIsBack(t *testing.T) {
	t.Parallel()
	d := worker(t)
	socket, _ := serving(t, d)
	golden(t, "maintenance.golden", transcript(t, socket,
		"maintenance status", "maintenance on --reason 'new fan' --for 2h", "maintenance on --reason 'new fan'",
		"maintenance status", "maintenance off", "maintenance status", "maintenance off"))
	want := "maintenance for 2h0m0s, keep running false: new fan; maintenance for 4h0m0s, keep running false: new " +
		"fan; end; end"
	if got := d.was(); got != want {
		t.Errorf("asked %q", got)
	}
}

func TestMaintenanceThatIsNotWaitedFor(t *testing.T) {
	t.Parallel()
	socket, _ := serving(t, worker(t))
	golden(t, "maintenance-no-wait.golden", transcript(t, socket,
		"maintenance on --reason 'new fan' --keep-running --no-wait", "maintenance status -o yaml", "cycle",
		"maintenance off --no-wait"))
	idle, _ := serving(t, worker(t))
	golden(t, "cycle-no-wait.golden", transcript(t, idle, "cycle --no-wait", "cycle --no-wait -o json"))
}

func TestProgramsGetTheMaintenanceAsOneDocument(t *testing.T) {
	t.Parallel()
	socket, _ := serving(t, worker(t))
	golden(t, "maintenance-documents.golden", transcript(t, socket,
		"maintenance on --reason 'new fan' -o yaml", "maintenance off -o json"))
}

func TestMaintenanceThatTakesTooLongStands(t *testing.T) {
	t.Parallel()
	d := worker(t)
	d.down = d.down[:2]
	d.back = []moment{{control.MaintenanceReturning, "NOT_BACK", "for 5m: it does not serve yet"}}
	socket, _ := serving(t, d)
	golden(t, "maintenance-late.golden", transcript(t, socket,
		"maintenance on --reason 'new fan' --wait=3s", "maintenance off --wait=3s"))
	if got := d.was(); strings.Count(got, "end") != 1 {
		t.Errorf("asked %q", got)
	}
	d = worker(t)
	d.down = d.down[:1]
	socket, _ = serving(t, d)
	golden(t, "cycle-late.golden", transcript(t, socket, "cycle --wait=2s"))
	if got := d.was(); strings.Contains(got, "end") {
		t.Errorf("asked %q", got)
	}
}

func TestAnInterruptedMaintenanceStandsAndSaysHowToWithdrawIt(t *testing.T) {
	t.Parallel()
	d := worker(t)
	ctx, cancel := context.WithCancel(t.Context())
	d.onLook = func(look int, _ *control.Status) {
		if look == 3 {
			cancel()
		}
	}
	socket, _ := serving(t, d)
	var errOut bytes.Buffer
	code := run(ctx, []string{"--socket", socket, "maintenance", "on", "--reason", "x"}, io.Discard, &errOut)
	want := "quorumctl: interrupted while waiting until this host is safe to work on: the request stays queued, and " +
		"etcd will be stopped when it is this host's turn\n" +
		"→ quorumctl maintenance status shows its progress, quorumctl maintenance off cancels it\n"
	if code != exitFault || errOut.String() != want {
		t.Errorf("exit %d: %s", code, &errOut)
	}
	if got := d.was(); strings.Contains(got, "end") {
		t.Errorf("asked %q", got)
	}
}

func TestMaintenanceEndedByAnotherUserIsReported(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, line string
		end        moment
		code       int
		says       string
	}{
		{
			"withdrawn", "maintenance on --reason x",
			moment{"", control.CodeCancelled, "by uid 7"},
			exitFault,
			"it ended: CANCELLED: by uid 7",
		},
		{
			"released", "cycle",
			moment{"", "RELEASED", "the operation was released by root"},
			exitFault,
			"cannot bring n1 back: RELEASED: the operation",
		},
		{"withdrawn cycle", "cycle", moment{"", control.CodeCancelled, "by uid 7"}, exitOK, "CANCELLED, by uid 7"},
		{
			"before a command", "cycle -- echo hello",
			moment{"", control.CodeCancelled, "by uid 7"},
			exitFault,
			"ended before the command was run: CANCELLED",
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			d := worker(t)
			d.down = []moment{d.down[0], c.end}
			socket, _ := serving(t, d)
			r := quorumctl(t, socket, spoken(c.line)...)
			if r.code != c.code || !strings.Contains(r.stdout+r.stderr, c.says) || strings.Contains(r.stdout, "hello") {
				t.Errorf("exit %d: %s%s", r.code, r.stdout, r.stderr)
			}
		})
	}
}

func TestAMaintenanceThatQuorumdForgetsIsNotWaitedForForEver(t *testing.T) {
	t.Parallel()
	d := worker(t)
	d.onLook = func(look int, s *control.Status) {
		s.Time = s.Time.Add(patienceForLost / 2)
		s.Maintenance = nil
	}
	socket, _ := serving(t, d)
	r := quorumctl(t, socket, "maintenance", "on", "--reason", "x")
	if r.code != exitFault || !strings.Contains(r.stderr, "quorumd has lost the request") {
		t.Errorf("exit %d: %s%s", r.code, r.stdout, r.stderr)
	}
}

func TestMaintenanceOutlastsARestartOfQuorumd(t *testing.T) {
	t.Parallel()
	d := worker(t)
	socket := filepath.Join(t.TempDir(), "s")
	ctx, stop := context.WithCancel(t.Context())
	servers := make(chan error, 2)
	serve := func(ctx context.Context) {
		servers <- server.New(server.Options{Socket: socket, Backend: d}).Serve(ctx)
	}
	d.onLook = func(look int, _ *control.Status) {
		if look == 3 {
			stop()
		}
	}
	go serve(ctx)
	// The new daemon starts when this one has reported that the old one is gone.
	out := &screen{wrote: func(int) {}}
	second, end := context.WithCancel(t.Context())
	out.wrote = func(int) {
		if strings.Contains(out.text.String(), "quorumd does not answer") && len(servers) == 1 {
			if err := <-servers; err != nil {
				t.Error(err)
			}
			go serve(second)
		}
	}
	var errOut bytes.Buffer
	code := run(t.Context(), []string{"--socket", socket, "maintenance", "on", "--reason", "x"}, out, &errOut)
	if code != exitOK || !strings.Contains(out.text.String(), "n1: safe to touch") {
		t.Errorf("exit %d: %s%s", code, out.text.String(), &errOut)
	}
	end()
	if err := <-servers; err != nil {
		t.Error(err)
	}
}

func TestOnATerminalALineWhoseNumbersMoveIsWrittenOver(t *testing.T) {
	t.Parallel()
	master, terminal := openTerminal(t)
	socket, _ := serving(t, worker(t))
	seen := make(chan string)
	go func() {
		b, _ := io.ReadAll(master) // it ends with an error when the terminal is closed
		seen <- string(b)
	}()
	code := run(t.Context(), []string{"--socket", socket, "--color", "never", "maintenance", "on", "--reason", "x"},
		terminal, io.Discard)
	terminal.Close()
	got := strings.ReplaceAll(<-seen, "\r\n", "\n")
	want := "\r    0s  waiting    CYCLE_QUEUED: n3 has an older request and goes first\x1b[K\n" +
		"    1s  waiting    SETTLING: 3.2s of the cooldown of 1m remain\x1b[K\r" +
		"    2s  waiting    SETTLING: 1.1s of the cooldown of 1m remain\x1b[K\n" +
		"    3s  stopping   STOPPING: etcd is stopping\x1b[K\nn1: safe to touch"
	if code != exitOK || !strings.HasPrefix(got, want) {
		t.Errorf("exit %d: %q", code, got)
	}
}

func TestANarrowTerminalIsNotWrittenBeyond(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	p := (&app{}).progressOn(&out)
	p.terminal, p.most = true, 30
	text := strings.Repeat("long ", 20) + "\x1b[2J"
	if err := p.show(scene(t, "steady").status.Time, "waiting", text, nil); err != nil {
		t.Fatal(err)
	}
	if got := out.String(); got != "\r    0s  waiting    long long …\x1b[K" {
		t.Errorf("%q", got)
	}
}

func TestProgressThatCannotBeWrittenIsAnError(t *testing.T) {
	t.Parallel()
	socket, _ := serving(t, worker(t))
	var errOut bytes.Buffer
	code := run(t.Context(), []string{"--socket", socket, "maintenance", "on", "--reason", "x"}, broken{}, &errOut)
	if code != exitFault || !strings.Contains(errOut.String(), os.ErrClosed.Error()) {
		t.Errorf("exit %d: %s", code, &errOut)
	}
}

func TestWaitAcceptsItsDurationAsASeparateArgument(t *testing.T) {
	t.Parallel()
	for given, want := range map[string]string{
		"cycle --wait 10m":                   "cycle --wait=10m",
		"cycle --wait --reason x":            "cycle --wait --reason x",
		"rollout start restart --wait":       "rollout start restart --wait",
		"cycle --wait 1d -- sleep --wait 3s": "cycle --wait=1d -- sleep --wait 3s",
	} {
		if got := strings.Join(joinWait(strings.Fields(given)), " "); got != want {
			t.Errorf("%q becomes %q, not %q", given, got, want)
		}
	}
}
