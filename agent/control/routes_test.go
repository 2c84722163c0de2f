// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package control

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/quorumd/quorumd/contrib/testbed/tempdir"
)

func TestEveryRouteReachesTheBackend(t *testing.T) {
	t.Parallel()
	d := &desk{}
	c := Dial(open(t, d))
	ctx := t.Context()
	lines, err := c.History(ctx, 3)
	if err != nil || len(lines) != 1 || lines[0].Revision != 7 {
		t.Errorf("history: %v, %v", lines, err)
	}
	if all, err := c.Checks(ctx); err != nil || all.APIVersion != APIVersion || len(all.Checks) != 1 ||
		all.Checks[0].Name != "fsync" || all.Checks[0].Limits == nil {
		t.Errorf("checks: %+v, %v", all, err)
	}
	if m, err := c.Mute(ctx, MuteRequest{Code: "MEMORY_LOW", Reason: " a batch job ", For: time.Hour}); err != nil ||
		m.Code != "MEMORY_LOW" || m.Until.Sub(m.Since) != time.Hour {
		t.Errorf("mute: %+v, %v", m, err)
	}
	if _, err := c.Mute(ctx, MuteRequest{Code: "A_B", Reason: "it is known"}); err != nil {
		t.Error(err)
	}
	if done, err := c.Unmute(ctx, "A_B"); err != nil || done.By != d.me() {
		t.Errorf("unmute: %+v, %v", done, err)
	}
	if _, err := c.History(ctx, 0); err != nil {
		t.Error(err)
	}
	if done, err := c.Bootstrap(ctx, "prod"); err != nil || done.By != d.me() {
		t.Errorf("bootstrap: %+v, %v", done, err)
	}
	pause, err := c.Pause(ctx, PauseRequest{Reason: " disk swap ", For: 90 * time.Minute})
	if err != nil || pause.Until.Sub(pause.Since) != 90*time.Minute || pause.By != d.me() {
		t.Errorf("pause: %+v, %v", pause, err)
	}
	if _, err := c.Pause(ctx, PauseRequest{Reason: "lunch"}); err != nil {
		t.Error(err)
	}
	if _, err := c.Resume(ctx); err != nil {
		t.Error(err)
	}
	if _, err := c.ReleaseOp(ctx, ReleaseRequest{Force: true, Reason: "n2 is in the bin"}); err != nil {
		t.Error(err)
	}
	if r, err := c.RemoveMember(ctx, RemovalRequest{
		Member: "n3", Reason: "in the bin", Live: true,
		For: time.Minute,
	}); err != nil || r.Name != "n3" || r.State != RemovalWaiting {
		t.Errorf("removal: %+v, %v", r, err)
	}
	if _, err := c.RemoveMember(ctx, RemovalRequest{Member: "fd422379fda50e48", Reason: "in the bin"}); err != nil {
		t.Error(err)
	}
	m, err := c.AskMaintenance(ctx, MaintenanceRequest{
		Work: WorkMaintenance, Reason: " new fan ", For: time.Hour,
		KeepRunning: true,
	})
	if err != nil || m.Work != WorkMaintenance || m.By != d.me() || m.Until.Sub(m.Since) != time.Hour ||
		m.State != MaintenanceWaiting {
		t.Errorf("maintenance: %+v, %v", m, err)
	}
	if _, err := c.AskMaintenance(ctx, MaintenanceRequest{
		Work: WorkReboot, Reason: "kernel",
		External: true,
	}); err != nil {
		t.Error(err)
	}
	if m, err := c.AskMaintenance(ctx, MaintenanceRequest{
		Work: WorkCommand, Command: "upgrade",
		Reason: "a fix",
	}); err != nil || m.Command != "upgrade" {
		t.Errorf("command: %+v, %v", m, err)
	}
	if done, err := c.EndMaintenance(ctx); err != nil || done.By != d.me() {
		t.Errorf("end of maintenance: %+v, %v", done, err)
	}
	r, err := c.StartRollout(ctx, RolloutRequest{
		Work: WorkRestart, Hosts: []string{"n1", "n3"}, Version: "v3.6.12",
		Reason: "a fix",
	})
	if err != nil || r.ID != "r1" || r.Hosts == nil {
		t.Errorf("rollout: %+v, %v", r, err)
	}
	if r, err := c.StartRollout(ctx, RolloutRequest{
		Work: WorkCommand, Command: "upgrade",
		Reason: "a fix",
	}); err != nil || r.ID != "r1" {
		t.Errorf("rollout of a command: %+v, %v", r, err)
	}
	if r, err := c.SetRollout(ctx, RolloutPaused); err != nil || r.State != RolloutPaused || r.Hosts == nil {
		t.Errorf("state of the rollout: %+v, %v", r, err)
	}
	want := fmt.Sprintf(`history 3
mute MEMORY_LOW "a batch job" for 1h0m0s by %[1]s
mute A_B "it is known" for 4h0m0s by %[1]s
unmute A_B by %[1]s
history 50
bootstrap by %[1]s
pause "disk swap" for 1h30m0s by %[1]s
pause "lunch" for 4h0m0s by %[1]s
resume by %[1]s
release "n2 is in the bin" by %[1]s
remove "n3" within 1m0s, live true: "in the bin" by %[1]s
remove "fd422379fda50e48" within 5m0s, live false: "in the bin" by %[1]s
maintenance "new fan" for 1h0m0s by %[1]s, keep running true, external false
reboot "kernel" for 4h0m0s by %[1]s, keep running false, external true
command upgrade "a fix" for 4h0m0s by %[1]s, keep running false, external false
end of maintenance by %[1]s
rollout restart of [n1 n3] until "3.6.12": "a fix" by %[1]s
rollout command upgrade of [] until "": "a fix" by %[1]s
rollout paused by %[1]s`, d.me())
	if got := d.notes(); got != want {
		t.Errorf("got:\n%s\nwant:\n%s", got, want)
	}
}

func TestInvalidRequestsAreRefusedWithAHint(t *testing.T) {
	t.Parallel()
	d := &desk{}
	socket := open(t, d)
	long := strings.Repeat("x", MaxReason+1)
	for name, c := range map[string]struct {
		method, path, body string
		status             int
		code, says         string
	}{
		"no such path":           {"GET", "/v2/status", "", 404, CodeNotFound, "/v2/status"},
		"a path that is unclean": {"GET", "/v1//status", "", 404, CodeNotFound, "GET /v1/status"},
		"another method":         {"DELETE", "/v1/status", "", 405, CodeNotFound, "allowed methods: GET"},
		"an unknown parameter":   {"GET", "/v1/history?limt=3", "", 400, CodeBadRequest, "limt"},
		"a broken query":         {"GET", "/v1/history?%zz", "", 400, CodeBadRequest, "?name=value"},
		"a limit of nothing":     {"GET", "/v1/history?limit=0", "", 400, CodeBadRequest, "1 to 1000"},
		"a limit too far":        {"GET", "/v1/history?limit=1001", "", 400, CodeBadRequest, "1 to 1000"},
		"a limit in words":       {"GET", "/v1/history?limit=all", "", 400, CodeBadRequest, "1 to 1000"},
		"an unknown field": {
			"PUT", "/v1/pause", `{"reason":"x","until":"noon"}`, 400, CodeBadRequest,
			`unknown field "until"`,
		},
		"a second value":        {"PUT", "/v1/pause", `{"reason":"x"} {}`, 400, CodeBadRequest, "more after"},
		"trailing garbage":      {"PUT", "/v1/pause", `{"reason":"x"}]`, 400, CodeBadRequest, "more after"},
		"no JSON":               {"PUT", "/v1/pause", `reason=x`, 400, CodeBadRequest, "not JSON"},
		"half of it":            {"PUT", "/v1/pause", `{"reason":"x`, 400, CodeBadRequest, "too early"},
		"a list":                {"PUT", "/v1/pause", `[]`, 400, CodeBadRequest, "array, not an object"},
		"a number as reason":    {"PUT", "/v1/pause", `{"reason":7}`, 400, CodeBadRequest, "reason: a JSON number"},
		"no reason":             {"PUT", "/v1/pause", ``, 400, CodeBadRequest, "reason is missing"},
		"a blank reason":        {"PUT", "/v1/pause", `{"reason":" \n "}`, 400, CodeBadRequest, "reason is missing"},
		"a reason of two lines": {"PUT", "/v1/pause", `{"reason":"a\nb"}`, 400, CodeBadRequest, "line breaks"},
		"a reason for terminals": {
			"PUT", "/v1/pause", `{"reason":"\u001b[2J"}`, 400, CodeBadRequest,
			"control characters",
		},
		"a reason without end": {
			"PUT", "/v1/pause", `{"reason":"` + long + `"}`, 400, CodeBadRequest,
			"at most 256",
		},
		"a pause of days": {
			"PUT", "/v1/pause", `{"reason":"x","for":"2 days"}`, 400, CodeBadRequest,
			"not a duration",
		},
		"a pause of nothing": {
			"PUT", "/v1/pause", `{"reason":"x","for":"0s"}`, 400, CodeBadRequest,
			"at most 168h",
		},
		"a pause in the past": {
			"PUT", "/v1/pause", `{"reason":"x","for":"-1h"}`, 400, CodeBadRequest,
			"at most 168h",
		},
		"a pause for ever": {
			"PUT", "/v1/pause", `{"reason":"x","for":"168h1s"}`, 400, CodeBadRequest,
			"at most 168h",
		},
		"a mute of nothing": {"PUT", "/v1/mute", `{"reason":"x"}`, 400, CodeBadRequest, "quorumctl codes"},
		"a mute of a screen": {
			"PUT", "/v1/mute", `{"code":"A B","reason":"x"}`, 400, CodeBadRequest, "unknown code",
		},
		"a mute for no reason":    {"PUT", "/v1/mute", `{"code":"A"}`, 400, CodeBadRequest, "reason is missing"},
		"a mute of months":        {"PUT", "/v1/mute", `{"code":"A","reason":"x","for":"721h"}`, 400, CodeBadRequest, "720h"},
		"an end of no mute":       {"DELETE", "/v1/mute", "", 400, CodeBadRequest, "quorumctl codes"},
		"a release without force": {"POST", "/v1/operation/release", `{"reason":"x"}`, 400, CodeBadRequest, "--force"},
		"a removal of no member":  {"PUT", "/v1/removal", `{"reason":"x"}`, 400, CodeBadRequest, "is not a name or ID"},
		"a removal of a screen": {
			"PUT", "/v1/removal", `{"member":"n3\u001b[2J","reason":"x"}`, 400, CodeBadRequest,
			"is not a name or ID",
		},
		"a removal for no reason": {"PUT", "/v1/removal", `{"member":"n3"}`, 400, CodeBadRequest, "reason is missing"},
		"a removal in a year": {
			"PUT", "/v1/removal", `{"member":"n3","reason":"x","for":"8760h"}`, 400,
			CodeBadRequest, "1s to 1h",
		},
		"a release for no reason": {
			"POST", "/v1/operation/release", `{"force":true}`, 400, CodeBadRequest,
			"reason is missing",
		},
		"work of no kind": {
			"PUT", "/v1/maintenance", `{"reason":"x"}`, 400, CodeBadRequest,
			`work: "" is not one of`,
		},
		"work for no reason": {
			"PUT", "/v1/maintenance", `{"work":"restart"}`, 400, CodeBadRequest,
			"reason is missing",
		},
		"work for seconds": {
			"PUT", "/v1/maintenance", `{"work":"restart","reason":"x","for":"59s"}`, 400,
			CodeBadRequest, "from 1m to 168h",
		},
		"work for the past": {
			"PUT", "/v1/maintenance", `{"work":"restart","reason":"x","for":"-4h"}`, 400,
			CodeBadRequest, "from 1m to 168h",
		},
		"work for ever": {
			"PUT", "/v1/maintenance", `{"work":"maintenance","reason":"x","for":"999999h"}`,
			400, CodeBadRequest, "from 1m to 168h",
		},
		"work for a while": {
			"PUT", "/v1/maintenance", `{"work":"maintenance","reason":"x","for":"a while"}`,
			400, CodeBadRequest, "not a duration",
		},
		"a restart that is none": {
			"PUT", "/v1/maintenance", `{"work":"restart","reason":"x","keepRunning":true}`, 400,
			CodeBadRequest, "keepRunning is not possible",
		},
		"a restart by others": {
			"PUT", "/v1/maintenance", `{"work":"restart","reason":"x","external":true}`, 400,
			CodeBadRequest, "only a reboot",
		},
		"a rollout of naught": {
			"POST", "/v1/rollout", `{"work":"maintenance","reason":"x"}`, 400, CodeBadRequest,
			"is not one of restart, reboot and command",
		},
		"a rollout for naught": {
			"POST", "/v1/rollout", `{"work":"restart"}`, 400, CodeBadRequest,
			"reason is missing",
		},
		"a host twice": {
			"POST", "/v1/rollout", `{"work":"restart","reason":"x","hosts":["a","a"]}`, 400,
			CodeBadRequest, `"a" is empty, repeated`,
		},
		"a host without a name": {
			"POST", "/v1/rollout", `{"work":"restart","reason":"x","hosts":[""]}`, 400,
			CodeBadRequest, "hosts",
		},
		"a host for terminals": {
			"POST", "/v1/rollout", `{"work":"restart","reason":"x","hosts":["\u001b[2J"]}`, 400,
			CodeBadRequest, "hosts",
		},
		"hosts without end": {
			"POST", "/v1/rollout",
			`{"work":"restart","reason":"x","hosts":[` + strings.Repeat(`"a",`, 1000) + `"b"]}`, 400, CodeBadRequest,
			"at most 1000",
		},
		"a command of no name": {
			"POST", "/v1/rollout", `{"work":"command","reason":"x"}`, 400, CodeBadRequest,
			`"" is not a valid command name`,
		},
		"a command elsewhere": {
			"POST", "/v1/rollout",
			`{"work":"command","reason":"x","command":"../before.d/10-x"}`, 400, CodeBadRequest,
			"is not a valid command name",
		},
		"a command of the root": {
			"PUT", "/v1/maintenance", `{"work":"command","reason":"x","command":"/bin/sh"}`,
			400, CodeBadRequest, "is not a valid command name",
		},
		"a command with a dot": {
			"PUT", "/v1/maintenance", `{"work":"command","reason":"x","command":"a.sh"}`, 400,
			CodeBadRequest, "commands.d",
		},
		"a command as a flag": {
			"PUT", "/v1/maintenance", `{"work":"command","reason":"x","command":"-rf"}`, 400,
			CodeBadRequest, "is not a valid command name",
		},
		"a command for terminals": {
			"POST", "/v1/rollout", `{"work":"command","reason":"x","command":"\u001b[2J"}`, 400,
			CodeBadRequest, "is not a valid command name",
		},
		"a command without end": {
			"POST", "/v1/rollout", `{"work":"command","reason":"x","command":"` + long + `"}`,
			400, CodeBadRequest, "at most 64",
		},
		"a restart with command": {
			"POST", "/v1/rollout", `{"work":"restart","reason":"x","command":"upgrade"}`, 400,
			CodeBadRequest, "a restart runs no command",
		},
		"a version of none": {
			"POST", "/v1/rollout", `{"work":"restart","reason":"x","version":"newest"}`, 400,
			CodeBadRequest, "such as 3.6.12",
		},
		"a rollout to nowhere": {
			"PUT", "/v1/rollout/state", `{"state":"done"}`, 400, CodeBadRequest,
			"not one of running, paused and aborted",
		},
		"the wrong cluster": {
			"POST", "/v1/bootstrap", `{"confirm":"test"}`, 409, CodeConflict,
			`cluster "prod", not "test"`,
		},
		"a body without end": {
			"PUT", "/v1/pause", `{"reason":"` + strings.Repeat("x", 64<<10) + `"}`, 413,
			CodeTooLarge, "over 65536 bytes",
		},
		"garbage without end": {
			"PUT", "/v1/pause", `{"reason":"x"}` + strings.Repeat(" ", 64<<10), 413,
			CodeTooLarge, "over 65536 bytes",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			status, body := ask(t, socket, c.method, c.path, c.body)
			e := errorIn(t, body)
			if status != c.status || e.Code != c.code || !strings.Contains(e.Error(), c.says) || e.Hint == "" {
				t.Errorf("got %d %+v, want %d %s and %q", status, e, c.status, c.code, c.says)
			}
		})
	}
	t.Cleanup(func() {
		if got := d.notes(); got != "" {
			t.Errorf("the backend was asked: %s", got)
		}
	})
}

func TestTheLongestPauseIsAccepted(t *testing.T) {
	t.Parallel()
	if status, body := ask(t, open(t, &desk{}), "PUT", "/v1/pause",
		`{"reason":"x","for":"168h"}`); status != http.StatusOK {
		t.Errorf("%d %s", status, body)
	}
}

func TestAWebPageIsRefused(t *testing.T) {
	t.Parallel()
	d := &desk{}
	socket := open(t, d)
	for _, c := range []struct{ header, code string }{
		{"Host: quorumd\r\nOrigin: http://evil.example", CodeNotPermitted},
		{"Host: quorumd\r\nReferer: http://evil.example/", CodeNotPermitted},
		{"Host: evil.example", CodeBadRequest},
		{"Host: evil.example:80", CodeBadRequest},
	} {
		status, body := send(t, socket, "DELETE /v1/pause HTTP/1.1\r\n"+c.header+"\r\nConnection: close\r\n\r\n")
		if e := errorIn(t, body); status < 400 || e.Code != c.code {
			t.Errorf("%q: %d %s", c.header, status, body)
		}
	}
	if got := d.notes(); got != "" {
		t.Errorf("the backend was asked: %s", got)
	}
	if status, body := send(t, socket,
		"DELETE /v1/pause HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"); status != http.StatusOK {
		t.Errorf("curl's way is refused: %d %s", status, body)
	}
}

func TestTheBackendsRefusalReachesTheCallerUnchanged(t *testing.T) {
	t.Parallel()
	refusal := &Error{
		Status: 409, Code: "PAUSED", Message: "cannot bootstrap: paused by root",
		Hint: "quorumctl resume",
	}
	c := Dial(open(t, &desk{change: func(context.Context) error { return fmt.Errorf("asked: %w", refusal) }}))
	_, err := c.Bootstrap(t.Context(), "")
	e, ok := errors.AsType[*Error](err)
	if !ok || *e != *refusal {
		t.Errorf("got %#v", err)
	}
	if err.Error() != "cannot bootstrap: paused by root; quorumctl resume" {
		t.Errorf("got %q", err)
	}
}

func TestABackendThatPanicsIsAnErrorDocument(t *testing.T) {
	t.Parallel()
	socket := open(t, &desk{change: func(context.Context) error { panic("oh") }})
	for range 20 { // more often than there are slots: each is freed
		status, body := ask(t, socket, "DELETE", "/v1/pause", "")
		if e := errorIn(t, body); status != http.StatusInternalServerError || e.Code != CodeInternal ||
			!strings.Contains(e.Message, "oh") {
			t.Fatalf("%d %s", status, body)
		}
	}
}

func TestEveryKindOfErrorHasAnErrorStatus(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		err    error
		status int
		code   string
	}{
		{errors.New("cannot x"), 500, CodeInternal},
		{fmt.Errorf("cannot x: %w", context.DeadlineExceeded), 504, CodeTimeout},
		{&Error{Code: "X", Message: "cannot x"}, 500, "X"},
		{&Error{Status: 200, Code: "X", Message: "cannot x"}, 500, "X"},
		{&Error{Status: 503, Code: "X", Message: "cannot x"}, 503, "X"},
		{&Error{Kind: NotNow, Code: "X", Message: "cannot x"}, 503, "X"},
		{&Error{Kind: Conflicts, Code: "X", Message: "cannot x"}, 409, "X"},
		{&Error{Kind: Wrong, Code: "X", Message: "cannot x"}, 400, "X"},
		{&Error{Kind: Forbidden, Code: "X", Message: "cannot x"}, 403, "X"},
	} {
		if e := wireError(c.err); e.Status != c.status || e.Code != c.code {
			t.Errorf("%v: got %d %s, want %d %s", c.err, e.Status, e.Code, c.status, c.code)
		}
	}
}

func TestABackendThatWaitsForEtcdTimesOutAndDoesNotDelayTheStatus(t *testing.T) {
	t.Parallel()
	lim := defaultLimits()
	lim.backend, lim.waiting = 300*time.Millisecond, 2
	waits := make(chan struct{}, 8)
	wait := func(ctx context.Context) error {
		waits <- struct{}{}
		<-ctx.Done()
		return fmt.Errorf("cannot read the history: %w", ctx.Err())
	}
	socket := serving(t, newServer(Options{
		Socket: filepath.Join(tempdir.New(t), "s"), Backend: &desk{history: wait, change: wait}, Logger: testLog(t),
	}, lim))
	codes := make(chan string, 8)
	for range 2 {
		go func() {
			_, err := Dial(socket).History(context.Background(), 1)
			codes <- codeOf(err)
		}()
		<-waits
	}
	if _, err := Dial(socket).Status(t.Context()); err != nil {
		t.Errorf("the status waits with them: %v", err)
	}
	if _, err := Dial(socket).History(t.Context(), 1); codeOf(err) != CodeBusy {
		t.Errorf("a third one waits too: %v", err)
	}
	go func() { // readers do not block an operator
		_, err := Dial(socket).Resume(context.Background())
		codes <- codeOf(err)
	}()
	<-waits
	for range 3 {
		if code := <-codes; code != CodeTimeout {
			t.Errorf("got %s", code)
		}
	}
}

func TestTheBackendsDeadlineIsTheServers(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		d := &desk{change: func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }}
		s := NewServer(Options{Backend: d})
		s.rules.self = 7
		start := time.Now()
		status, _ := handle(t, s, "DELETE", "/v1/pause", "", peer{uid: 7})
		if took := time.Since(start); status != http.StatusGatewayTimeout || took != 10*time.Second {
			t.Errorf("%d after %s", status, took)
		}
	})
}

func codeOf(err error) string {
	if e, ok := errors.AsType[*Error](err); ok {
		return e.Code
	}
	return fmt.Sprint(err)
}

func TestTheAnswerToAChangeWaitsUntilTheStatusShowsIt(t *testing.T) {
	t.Parallel()
	changed, shown := make(chan struct{}), make(chan struct{})
	d := &desk{
		change: func(context.Context) error { close(changed); return nil },
		look: func(ctx context.Context) error {
			select {
			case <-shown:
			case <-ctx.Done():
			}
			return ctx.Err()
		},
	}
	c := Dial(open(t, d))
	answer := make(chan error, 1)
	go func() { _, err := c.Resume(context.Background()); answer <- err }()
	<-changed
	select {
	case err := <-answer:
		t.Fatalf("it is answered before the status shows it: %v", err)
	case <-time.After(50 * time.Millisecond):
	}
	close(shown)
	if err := <-answer; err != nil {
		t.Error(err)
	}
}

func TestAChangeSucceedsEvenIfTheStatusDoesNotShowItSoon(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := NewServer(Options{Backend: &desk{look: func(ctx context.Context) error {
			<-ctx.Done()
			return ctx.Err()
		}}})
		s.rules.self = 7
		start := time.Now()
		status, _ := handle(t, s, "DELETE", "/v1/pause", "", peer{uid: 7})
		if took := time.Since(start); status != http.StatusOK || took != 5*time.Second {
			t.Errorf("%d after %s", status, took)
		}
	})
}
