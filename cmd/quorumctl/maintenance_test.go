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
	"github.com/quorumd/quorumd/agent/policy"
)

// maintenanceBackend returns a backend whose host goes down and comes back in several reads.
func maintenanceBackend(t *testing.T) *fakeBackend {
	t.Helper()
	d := scene(t, "steady")
	d.status.Reasons = []control.Reason{{Code: "IDLE", Text: "this host is a voter; nothing to do"}}
	d.down = []maintenanceStep{
		{policy.RequestWaiting, "CYCLE_QUEUED", "n3 has an older request and goes first"},
		{policy.RequestWaiting, "SETTLING", "3.2s of the cooldown of 1m remain"},
		{policy.RequestWaiting, "SETTLING", "1.1s of the cooldown of 1m remain"},
		{policy.RequestStopping, "STOPPING", "etcd is stopping"},
		{policy.RequestSafe, "IN_MAINTENANCE", "by root: new fan"},
	}
	d.back = []maintenanceStep{
		{policy.RequestReturning, "RETURNING", "the member does not serve yet"},
		{policy.RequestReturning, "RETURNING", "the member has served for 4s of 10s"},
		{"", policy.Cycled, "the host is back"},
	}
	return d
}

func TestMaintenanceOnAndOffWait(t *testing.T) {
	t.Parallel()
	d := maintenanceBackend(t)
	socket, _ := serve(t, d)
	golden(t, "maintenance.golden", transcript(t, socket,
		"maintenance status", "maintenance on --reason 'new fan' --for 2h", "maintenance on --reason 'new fan'",
		"maintenance status", "maintenance off", "maintenance status", "maintenance off"))
	want := "maintenance for 2h0m0s, keep running false: new fan; maintenance for 4h0m0s, keep running false: new " +
		"fan; end; end"
	if got := d.requests(); got != want {
		t.Errorf("asked %q", got)
	}
}

func TestMaintenanceNoWait(t *testing.T) {
	t.Parallel()
	socket, _ := serve(t, maintenanceBackend(t))
	golden(t, "maintenance-no-wait.golden", transcript(t, socket,
		"maintenance on --reason 'new fan' --keep-running --no-wait", "maintenance status -o yaml", "cycle",
		"maintenance off --no-wait"))
	idle, _ := serve(t, maintenanceBackend(t))
	golden(t, "cycle-no-wait.golden", transcript(t, idle, "cycle --no-wait", "cycle --no-wait -o json"))
}

func TestMaintenanceDocuments(t *testing.T) {
	t.Parallel()
	socket, _ := serve(t, maintenanceBackend(t))
	golden(t, "maintenance-documents.golden", transcript(t, socket,
		"maintenance on --reason 'new fan' -o yaml", "maintenance off -o json"))
}

func TestTimeoutKeepsTheMaintenanceRequest(t *testing.T) {
	t.Parallel()
	d := maintenanceBackend(t)
	d.down = d.down[:2]
	d.back = []maintenanceStep{{policy.RequestReturning, "NOT_BACK", "for 5m: the member does not serve yet"}}
	socket, _ := serve(t, d)
	golden(t, "maintenance-late.golden", transcript(t, socket,
		"maintenance on --reason 'new fan' --wait=3s", "maintenance off --wait=3s"))
	if got := d.requests(); strings.Count(got, "end") != 1 {
		t.Errorf("asked %q", got)
	}
	d = maintenanceBackend(t)
	d.down = d.down[:1]
	socket, _ = serve(t, d)
	golden(t, "cycle-late.golden", transcript(t, socket, "cycle --wait=2s"))
	if got := d.requests(); strings.Contains(got, "end") {
		t.Errorf("asked %q", got)
	}
}

func TestInterruptKeepsTheMaintenanceRequest(t *testing.T) {
	t.Parallel()
	d := maintenanceBackend(t)
	ctx, cancel := context.WithCancel(t.Context())
	d.onRead = func(look int, _ *control.Status) {
		if look == 3 {
			cancel()
		}
	}
	socket, _ := serve(t, d)
	var errOut bytes.Buffer
	code := run(ctx, []string{"--socket", socket, "maintenance", "on", "--reason", "x"}, io.Discard, &errOut)
	want := "quorumctl: interrupted while waiting until this host is safe to work on: the maintenance continues, " +
		"or begins when no other host is down\n" +
		"→ quorumctl maintenance status shows its progress; quorumctl maintenance off cancels it\n"
	if code != exitFault || errOut.String() != want {
		t.Errorf("exit %d: %s", code, &errOut)
	}
	if got := d.requests(); strings.Contains(got, "end") {
		t.Errorf("asked %q", got)
	}
}

func TestMaintenanceEndedByAnotherUserIsReported(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, line string
		end        maintenanceStep
		code       int
		says       string
	}{
		{
			"cancelled", "maintenance on --reason x",
			maintenanceStep{"", policy.Cancelled, "by uid 7"},
			exitFault,
			"cannot begin the maintenance: CANCELLED: by uid 7",
		},
		{
			"released", "cycle",
			maintenanceStep{"", "RELEASED", "the operation was released by root"},
			exitFault,
			"cannot bring n1 back: RELEASED: the operation",
		},
		{
			"cancelled cycle", "cycle",
			maintenanceStep{"", policy.Cancelled, "by uid 7"},
			exitOK,
			"CANCELLED, by uid 7",
		},
		{
			"before a command", "cycle -- echo hello",
			maintenanceStep{"", policy.Cancelled, "by uid 7"},
			exitFault,
			"ended before the command was run: CANCELLED",
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			d := maintenanceBackend(t)
			d.down = []maintenanceStep{d.down[0], c.end}
			socket, _ := serve(t, d)
			r := quorumctl(t, socket, splitLine(c.line)...)
			if r.code != c.code || !strings.Contains(r.stdout+r.stderr, c.says) || strings.Contains(r.stdout, "hello") {
				t.Errorf("exit %d: %s%s", r.code, r.stdout, r.stderr)
			}
		})
	}
}

func TestWaitEndsIfQuorumdLosesTheMaintenance(t *testing.T) {
	t.Parallel()
	d := maintenanceBackend(t)
	d.onRead = func(look int, s *control.Status) {
		s.Time = s.Time.Add(lostAfter / 2)
		s.Maintenance = nil
	}
	socket, _ := serve(t, d)
	r := quorumctl(t, socket, "maintenance", "on", "--reason", "x")
	if r.code != exitFault || !strings.Contains(r.stderr, "quorumd has lost the request") {
		t.Errorf("exit %d: %s%s", r.code, r.stdout, r.stderr)
	}
}

func TestMaintenanceOutlastsARestartOfQuorumd(t *testing.T) {
	t.Parallel()
	d := maintenanceBackend(t)
	socket := filepath.Join(t.TempDir(), "s")
	ctx, stop := context.WithCancel(t.Context())
	servers := make(chan error, 2)
	serve := func(ctx context.Context) {
		servers <- server.New(server.Options{Socket: socket, Backend: d}).Serve(ctx)
	}
	d.onRead = func(look int, _ *control.Status) {
		if look == 3 {
			stop()
		}
	}
	go serve(ctx)
	// The second server starts when the command has reported that quorumd does not answer.
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

func TestProgressOverwritesALineIfOnlyNumbersChange(t *testing.T) {
	t.Parallel()
	master, terminal := openTerminal(t)
	socket, _ := serve(t, maintenanceBackend(t))
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

func TestProgressFitsANarrowTerminal(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	p := (&app{}).newProgress(&out)
	p.terminal, p.maxWidth = true, 30
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
	socket, _ := serve(t, maintenanceBackend(t))
	var errOut bytes.Buffer
	code := run(t.Context(), []string{"--socket", socket, "maintenance", "on", "--reason", "x"}, brokenWriter{},
		&errOut)
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
