// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package server

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

	"github.com/quorumd/quorumd/agent/control"
	"github.com/quorumd/quorumd/agent/policy"
	"github.com/quorumd/quorumd/agent/record"
	"github.com/quorumd/quorumd/contrib/testbed/tempdir"
)

func TestEveryRouteReachesTheBackend(t *testing.T) {
	t.Parallel()
	d := &fake{}
	c := control.Dial(serveBackend(t, d))
	ctx := t.Context()
	hour := control.Duration(time.Hour)
	lines, err := c.History(ctx, 3)
	if err != nil || len(lines) != 1 || lines[0].Revision != 7 {
		t.Errorf("history: %v, %v", lines, err)
	}
	if all, err := c.Checks(ctx); err != nil || all.APIVersion != control.APIVersion || len(all.Checks) != 1 ||
		all.Checks[0].Name != "fsync" || all.Checks[0].Limits == nil {
		t.Errorf("checks: %+v, %v", all, err)
	}
	mute, err := c.Mute(ctx, control.MuteRequest{Code: "MEMORY_LOW", Reason: " a batch job ", For: hour})
	if err != nil || mute.Code != "MEMORY_LOW" || mute.Until.Sub(mute.Since) != time.Hour {
		t.Errorf("mute: %+v, %v", mute, err)
	}
	if _, err := c.Mute(ctx, control.MuteRequest{Code: "A_B", Reason: "it is known"}); err != nil {
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
	pause, err := c.Pause(ctx, control.PauseRequest{Reason: " disk swap ", For: 3 * hour / 2})
	if err != nil || pause.Until.Sub(pause.Since) != 90*time.Minute || pause.By != d.me() {
		t.Errorf("pause: %+v, %v", pause, err)
	}
	if _, err := c.Pause(ctx, control.PauseRequest{Reason: "lunch"}); err != nil {
		t.Error(err)
	}
	if _, err := c.Resume(ctx); err != nil {
		t.Error(err)
	}
	if _, err := c.ReleaseOp(ctx, control.ReleaseRequest{Force: true, Reason: "n2 is scrapped"}); err != nil {
		t.Error(err)
	}
	removal, err := c.RemoveMember(ctx, control.RemovalRequest{
		Member: "n3", Reason: "scrapped", Live: true, For: hour / 60,
	})
	if err != nil || removal.Name != "n3" || removal.State != control.RemovalWaiting {
		t.Errorf("removal: %+v, %v", removal, err)
	}
	_, err = c.RemoveMember(ctx, control.RemovalRequest{Member: "fd422379fda50e48", Reason: "scrapped"})
	if err != nil {
		t.Error(err)
	}
	m, err := c.RequestMaintenance(ctx, control.MaintenanceRequest{
		Work: policy.WorkMaintenance, Reason: " new fan ", For: hour, KeepRunning: true,
	})
	if err != nil || m.Work != policy.WorkMaintenance || m.By != d.me() || m.Until.Sub(m.Since) != time.Hour ||
		m.State != policy.RequestWaiting {
		t.Errorf("maintenance: %+v, %v", m, err)
	}
	_, err = c.RequestMaintenance(ctx, control.MaintenanceRequest{
		Work: policy.WorkReboot, Reason: "kernel", External: true,
	})
	if err != nil {
		t.Error(err)
	}
	m, err = c.RequestMaintenance(ctx, control.MaintenanceRequest{
		Work: policy.WorkCommand, Command: "upgrade", Reason: "a fix",
	})
	if err != nil || m.Command != "upgrade" {
		t.Errorf("command: %+v, %v", m, err)
	}
	if done, err := c.EndMaintenance(ctx); err != nil || done.By != d.me() {
		t.Errorf("end of maintenance: %+v, %v", done, err)
	}
	r, err := c.StartRollout(ctx, control.RolloutRequest{
		Work: policy.WorkRestart, Hosts: []string{"n1", "n3"}, Version: "v3.6.12", Reason: "a fix",
	})
	if err != nil || r.ID != "r1" || r.Hosts == nil {
		t.Errorf("rollout: %+v, %v", r, err)
	}
	r, err = c.StartRollout(ctx, control.RolloutRequest{Work: policy.WorkCommand, Command: "upgrade", Reason: "a fix"})
	if err != nil || r.ID != "r1" {
		t.Errorf("rollout of a command: %+v, %v", r, err)
	}
	r, err = c.SetRollout(ctx, record.RolloutPaused)
	if err != nil || r.State != record.RolloutPaused || r.Hosts == nil {
		t.Errorf("state of the rollout: %+v, %v", r, err)
	}
	seen := int64(7)
	size, err := c.Resize(ctx, control.ResizeRequest{Voters: 5, Reason: " a rack ", IfRevision: &seen})
	if err != nil || size.Target != 5 || size.Steps == nil || size.Warnings == nil {
		t.Errorf("resize: %+v, %v", size, err)
	}
	if _, err := c.Resize(ctx, control.ResizeRequest{Voters: 1, WithoutSnapshot: true}); err != nil {
		t.Error(err)
	}
	size, err = c.Size(ctx)
	if err != nil || size.Target != 3 || size.APIVersion != control.APIVersion || size.Steps == nil {
		t.Errorf("size: %+v, %v", size, err)
	}
	moved, err := c.TransferLeadership(ctx, control.TransferRequest{Host: "n2", Reason: " a fan "})
	if err != nil || moved.APIVersion != control.APIVersion || moved.Steps == nil || moved.Warnings == nil {
		t.Errorf("leadership transfer: %+v, %v", moved, err)
	}
	if moved, err = c.TransferLeadership(ctx, control.TransferRequest{DryRun: true}); err != nil || !moved.DryRun {
		t.Errorf("leadership transfer to the best: %+v, %v", moved, err)
	}
	retirement, err := c.Retire(ctx, control.RetireRequest{Host: "n3", Reason: " old "})
	if err != nil || retirement.Host.ID != "n3" || retirement.Steps == nil ||
		retirement.APIVersion != control.APIVersion {
		t.Errorf("retire: %+v, %v", retirement, err)
	}
	if _, err := c.Retire(ctx, control.RetireRequest{Host: "n3", Reason: " ", Undo: true}); err != nil {
		t.Error(err)
	}
	if hosts, err := c.RetiredHosts(ctx); err != nil || hosts.Hosts == nil || hosts.APIVersion != control.APIVersion {
		t.Errorf("retired hosts: %+v, %v", hosts, err)
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
release "n2 is scrapped" by %[1]s
remove "n3" within 1m0s, live true: "scrapped" by %[1]s
remove "fd422379fda50e48" within 5m0s, live false: "scrapped" by %[1]s
maintenance "new fan" for 1h0m0s by %[1]s, keep running true, external false
reboot "kernel" for 4h0m0s by %[1]s, keep running false, external true
command upgrade "a fix" for 4h0m0s by %[1]s, keep running false, external false
end of maintenance by %[1]s
rollout restart of [n1 n3] until "3.6.12": "a fix" by %[1]s
rollout command upgrade of [] until "": "a fix" by %[1]s
rollout paused by %[1]s
resize to 5 if revision 7, without snapshot false: "a rack" by %[1]s
resize to 1 if revision any, without snapshot true: "" by %[1]s
transfer leadership to "n2": "a fan" by %[1]s
transfer leadership to "": "" by %[1]s
retire n3, undo false: "old" by %[1]s
retire n3, undo true: "" by %[1]s`, d.me())
	if got := d.calls(); got != want {
		t.Errorf("got:\n%s\nwant:\n%s", got, want)
	}
}

func TestInvalidRequestsAreRefusedWithAHint(t *testing.T) {
	t.Parallel()
	d := &fake{}
	socket := serveBackend(t, d)
	long, many := strings.Repeat("x", control.MaxReason+1), strings.Repeat(`"a",`, 1000)
	for name, c := range map[string]struct{ route, body, want string }{
		"query: unknown parameter":   {"GET /v1/history?limt=3", "", "limt"},
		"query: invalid":             {"GET /v1/history?%zz", "", "?name=value"},
		"history: limit of 0":        {"GET /v1/history?limit=0", "", "1 to 1000"},
		"history: limit of 1001":     {"GET /v1/history?limit=1001", "", "1 to 1000"},
		"history: limit of all":      {"GET /v1/history?limit=all", "", "1 to 1000"},
		"body: unknown field":        {"PUT /v1/pause", `{"reason":"x","until":"noon"}`, `unknown field "until"`},
		"body: second value":         {"PUT /v1/pause", `{"reason":"x"} {}`, "more after"},
		"body: trailing garbage":     {"PUT /v1/pause", `{"reason":"x"}]`, "more after"},
		"body: not JSON":             {"PUT /v1/pause", `reason=x`, "not JSON"},
		"body: truncated":            {"PUT /v1/pause", `{"reason":"x`, "too early"},
		"body: array":                {"PUT /v1/pause", `[]`, "array, not an object"},
		"reason: number":             {"PUT /v1/pause", `{"reason":7}`, "reason: a JSON number"},
		"reason: missing":            {"PUT /v1/pause", ``, "reason is missing"},
		"reason: blank":              {"PUT /v1/pause", `{"reason":" \n "}`, "reason is missing"},
		"reason: two lines":          {"PUT /v1/pause", `{"reason":"a\nb"}`, "line breaks"},
		"reason: escape sequence":    {"PUT /v1/pause", `{"reason":"\u001b[2J"}`, "control characters"},
		"reason: too long":           {"PUT /v1/pause", `{"reason":"` + long + `"}`, "at most 256"},
		"pause: unknown unit":        {"PUT /v1/pause", `{"reason":"x","for":"2 days"}`, "not a duration"},
		"pause: duration of 0":       {"PUT /v1/pause", `{"reason":"x","for":"0s"}`, "0s is out of bounds"},
		"pause: negative duration":   {"PUT /v1/pause", `{"reason":"x","for":"-1h"}`, "at most 168h"},
		"pause: too long":            {"PUT /v1/pause", `{"reason":"x","for":"168h1s"}`, "at most 168h"},
		"pause: number as duration":  {"PUT /v1/pause", `{"reason":"x","for":7}`, "for: a JSON number"},
		"mute: no code":              {"PUT /v1/mute", `{"reason":"x"}`, "quorumctl codes"},
		"mute: invalid code":         {"PUT /v1/mute", `{"code":"A B","reason":"x"}`, "unknown code"},
		"mute: no reason":            {"PUT /v1/mute", `{"code":"A"}`, "reason is missing"},
		"mute: too long":             {"PUT /v1/mute", `{"code":"A","reason":"x","for":"721h"}`, "720h"},
		"unmute: no code":            {"DELETE /v1/mute", "", "quorumctl codes"},
		"release: no force":          {"POST /v1/operation/release", `{"reason":"x"}`, "--force"},
		"release: no reason":         {"POST /v1/operation/release", `{"force":true}`, "reason is missing"},
		"removal: no member":         {"PUT /v1/removal", `{"reason":"x"}`, "is not a name or ID"},
		"removal: escape sequence":   {"PUT /v1/removal", `{"member":"n3\u001b[2J","reason":"x"}`, "not a name or ID"},
		"removal: no reason":         {"PUT /v1/removal", `{"member":"n3"}`, "reason is missing"},
		"removal: too long":          {"PUT /v1/removal", `{"member":"n3","reason":"x","for":"8760h"}`, "1s to 1h"},
		"maintenance: no work":       {"PUT /v1/maintenance", `{"reason":"x"}`, `work: "" is not one of`},
		"maintenance: no reason":     {"PUT /v1/maintenance", `{"work":"restart"}`, "reason is missing"},
		"maintenance: too short":     {"PUT /v1/maintenance", maintenanceFor("59s"), "from 1m to 168h"},
		"maintenance: negative":      {"PUT /v1/maintenance", maintenanceFor("-4h"), "from 1m to 168h"},
		"maintenance: too long":      {"PUT /v1/maintenance", maintenanceFor("999999h"), "from 1m to 168h"},
		"maintenance: no duration":   {"PUT /v1/maintenance", maintenanceFor("a while"), "not a duration"},
		"restart: keeps running":     {"PUT /v1/maintenance", restartWith(`"keepRunning":true`), "keepRunning is not"},
		"restart: external":          {"PUT /v1/maintenance", restartWith(`"external":true`), "only a reboot"},
		"command: absolute path":     {"PUT /v1/maintenance", command("/bin/sh"), "is not a valid command name"},
		"command: dot":               {"PUT /v1/maintenance", command("a.sh"), "commands.d"},
		"command: flag":              {"PUT /v1/maintenance", command("-rf"), "is not a valid command name"},
		"rollout: unknown work":      {"POST /v1/rollout", `{"work":"maintenance","reason":"x"}`, "is not one of"},
		"rollout: no reason":         {"POST /v1/rollout", `{"work":"restart"}`, "reason is missing"},
		"rollout: repeated host":     {"POST /v1/rollout", restartWith(`"hosts":["a","a"]`), `"a" is empty, repeated`},
		"rollout: empty host":        {"POST /v1/rollout", restartWith(`"hosts":[""]`), "hosts"},
		"rollout: escape sequence":   {"POST /v1/rollout", restartWith(`"hosts":["\u001b[2J"]`), "hosts"},
		"rollout: too many hosts":    {"POST /v1/rollout", restartWith(`"hosts":[` + many + `"b"]`), "at most 1000"},
		"rollout: no command":        {"POST /v1/rollout", command(""), `"" is not a valid command name`},
		"rollout: relative path":     {"POST /v1/rollout", command("../before.d/10-x"), "is not a valid command name"},
		"rollout: command of escape": {"POST /v1/rollout", command(`\u001b[2J`), "is not a valid command name"},
		"rollout: long command":      {"POST /v1/rollout", command(long), "at most 64"},
		"rollout: unused command":    {"POST /v1/rollout", restartWith(`"command":"upgrade"`), "not possible"},
		"rollout: after an abort":    {"POST /v1/rollout", restartWith(`"afterAbort":true`), "only with dryRun"},
		"rollout: invalid version":   {"POST /v1/rollout", restartWith(`"version":"newest"`), "such as 3.6.12"},
		"resize: a word":             {"POST /v1/cluster/resize", `{"voters":"five"}`, "voters: a JSON string"},
		"resize: a fraction":         {"POST /v1/cluster/resize", `{"voters":2.5}`, "voters"},
		"resize: negative revision":  {"POST /v1/cluster/resize", `{"voters":5,"ifRevision":-1}`, "not a revision"},
		"resize: two lines":          {"POST /v1/cluster/resize", `{"voters":5,"reason":"a\nb"}`, "line breaks"},
		"transfer: not a name":       {"POST /v1/leader/transfer", `{"host":"a\nb"}`, "is not a name"},
		"transfer: a number":         {"POST /v1/leader/transfer", `{"host":2}`, "host: a JSON number"},
		"transfer: two lines":        {"POST /v1/leader/transfer", `{"reason":"a\nb"}`, "line breaks"},
		"resize: too long":           {"POST /v1/cluster/resize", `{"reason":"` + long + `","voters":5}`, "most 256"},
		"retire: no host":            {"POST /v1/retire", `{"reason":"old"}`, `host: "" is not the name`},
		"retire: no reason":          {"POST /v1/retire", `{"host":"n3"}`, "reason is missing"},
		"retire: escape sequence":    {"POST /v1/retire", `{"host":"\u001b[2J","reason":"old"}`, "is not the name"},
		"retire: long name":          {"POST /v1/retire", `{"host":"` + long + `","reason":"old"}`, "is not the name"},
		"retire: two lines":          {"POST /v1/retire", `{"host":"n3","undo":true,"reason":"a\nb"}`, "line breaks"},
		"rollout state: unknown":     {"PUT /v1/rollout/state", `{"state":"done"}`, "not one of running, paused"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			refusedWith(t, socket, c.route, c.body, 400, control.CodeBadRequest, c.want)
		})
	}
	t.Cleanup(func() {
		if got := d.calls(); got != "" {
			t.Errorf("the backend was called: %s", got)
		}
	})
}

// refusedWith checks that a request is refused with a hint, and with an error that contains a text.
func refusedWith(t *testing.T, socket, route, body string, status int, code, want string) {
	t.Helper()
	method, path, _ := strings.Cut(route, " ")
	got, answer := call(t, socket, method, path, body)
	e := errorIn(t, answer)
	if got != status || e.Code != code || !strings.Contains(e.Error(), want) || e.Hint == "" {
		t.Errorf("got %d %+v, want %d %s and %q", got, e, status, code, want)
	}
}

// maintenanceFor returns the body of a request for maintenance.
func maintenanceFor(d string) string { return `{"work":"maintenance","reason":"x","for":"` + d + `"}` }

// restartWith returns the body of a request for a restart with one more field.
func restartWith(field string) string { return `{"work":"restart","reason":"x",` + field + `}` }

// command returns the body of a request for a command.
func command(name string) string { return `{"work":"command","reason":"x","command":"` + name + `"}` }

func TestOtherRefusalsHaveTheirOwnStatusAndAHint(t *testing.T) {
	t.Parallel()
	d := &fake{}
	socket := serveBackend(t, d)
	long, blank := strings.Repeat("x", 64<<10), strings.Repeat(" ", 64<<10)
	const conflict, large = control.CodeConflict, control.CodeTooLarge
	for name, c := range map[string]struct {
		route, body string
		status      int
		code, want  string
	}{
		"unknown path":     {"GET /v2/status", "", 404, control.CodeNotFound, "/v2/status"},
		"unclean path":     {"GET /v1//status", "", 404, control.CodeNotFound, "GET /v1/status"},
		"another method":   {"DELETE /v1/status", "", 405, control.CodeNotFound, "allowed methods: GET"},
		"another cluster":  {"POST /v1/bootstrap", `{"confirm":"test"}`, 409, conflict, `cluster "prod", not "test"`},
		"large body":       {"PUT /v1/pause", `{"reason":"` + long + `"}`, 413, large, "over 65536 bytes"},
		"trailing garbage": {"PUT /v1/pause", `{"reason":"x"}` + blank, 413, large, "over 65536 bytes"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			refusedWith(t, socket, c.route, c.body, c.status, c.code, c.want)
		})
	}
	t.Cleanup(func() {
		if got := d.calls(); got != "" {
			t.Errorf("the backend was called: %s", got)
		}
	})
}

func TestTheLongestPauseIsAccepted(t *testing.T) {
	t.Parallel()
	if status, body := call(t, serveBackend(t, &fake{}), "PUT", "/v1/pause",
		`{"reason":"x","for":"168h"}`); status != http.StatusOK {
		t.Errorf("%d %s", status, body)
	}
}

func TestAWebPageIsRefused(t *testing.T) {
	t.Parallel()
	d := &fake{}
	socket := serveBackend(t, d)
	for _, c := range []struct{ header, code string }{
		{"Host: quorumd\r\nOrigin: http://evil.example", control.CodeNotPermitted},
		{"Host: quorumd\r\nReferer: http://evil.example/", control.CodeNotPermitted},
		{"Host: evil.example", control.CodeBadRequest},
		{"Host: evil.example:80", control.CodeBadRequest},
	} {
		status, body := sendRaw(t, socket, "DELETE /v1/pause HTTP/1.1\r\n"+c.header+"\r\nConnection: close\r\n\r\n")
		if e := errorIn(t, body); status < 400 || e.Code != c.code {
			t.Errorf("%q: %d %s", c.header, status, body)
		}
	}
	if got := d.calls(); got != "" {
		t.Errorf("the backend was called: %s", got)
	}
	if status, body := sendRaw(t, socket,
		"DELETE /v1/pause HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"); status != http.StatusOK {
		t.Errorf("a request as curl sends it: %d %s", status, body)
	}
}

func TestBootstrapWaitsForTheDataDirectory(t *testing.T) {
	t.Parallel()
	d := &fake{}
	d.await = func(ctx context.Context) {
		if _, bounded := ctx.Deadline(); !bounded {
			t.Error("the wait has no deadline")
		}
		d.record("wait")
	}
	c := control.Dial(serveBackend(t, d))
	if err := c.MayBootstrap(t.Context()); err != nil {
		t.Error(err)
	}
	if _, err := c.Bootstrap(t.Context(), ""); err != nil {
		t.Error(err)
	}
	if got, want := d.calls(), "wait\nmay bootstrap\nwait\nbootstrap by "+d.me(); got != want {
		t.Errorf("the backend was called:\n%s\nnot:\n%s", got, want)
	}
}

func TestARefusalOfTheBackendReachesTheCallerUnchanged(t *testing.T) {
	t.Parallel()
	refusal := &control.Error{
		Status: 409, Code: "PAUSED", Message: "cannot bootstrap: paused by root",
		Hint: "quorumctl resume",
	}
	c := control.Dial(serveBackend(t, &fake{change: func(context.Context) error {
		return fmt.Errorf("wrapped: %w", refusal)
	}}))
	_, err := c.Bootstrap(t.Context(), "")
	e, ok := errors.AsType[*control.Error](err)
	if !ok || *e != *refusal {
		t.Errorf("got %#v", err)
	}
	if err.Error() != "cannot bootstrap: paused by root; quorumctl resume" {
		t.Errorf("got %q", err)
	}
}

func TestAPanicOfTheBackendIsAnErrorDocument(t *testing.T) {
	t.Parallel()
	socket := serveBackend(t, &fake{change: func(context.Context) error { panic("oh") }})
	for range 20 { // more requests than slots: every panic frees its slot
		status, body := call(t, socket, "DELETE", "/v1/pause", "")
		if e := errorIn(t, body); status != http.StatusInternalServerError || e.Code != control.CodeInternal ||
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
		{errors.New("cannot x"), 500, control.CodeInternal},
		{fmt.Errorf("cannot x: %w", context.DeadlineExceeded), 504, control.CodeTimeout},
		{&control.Error{Code: "X", Message: "cannot x"}, 500, "X"},
		{&control.Error{Status: 200, Code: "X", Message: "cannot x"}, 500, "X"},
		{&control.Error{Status: 503, Code: "X", Message: "cannot x"}, 503, "X"},
		{&control.Error{Kind: control.NotNow, Code: "X", Message: "cannot x"}, 503, "X"},
		{&control.Error{Kind: control.Conflicts, Code: "X", Message: "cannot x"}, 409, "X"},
		{&control.Error{Kind: control.Wrong, Code: "X", Message: "cannot x"}, 400, "X"},
		{&control.Error{Kind: control.Forbidden, Code: "X", Message: "cannot x"}, 403, "X"},
	} {
		if e := toError(c.err); e.Status != c.status || e.Code != c.code {
			t.Errorf("%v: got %d %s, want %d %s", c.err, e.Status, e.Code, c.status, c.code)
		}
	}
}

func TestABlockedBackendTimesOutAndDoesNotDelayTheStatus(t *testing.T) {
	t.Parallel()
	lim := defaultLimits()
	lim.backend, lim.waiting = 300*time.Millisecond, 2
	waits := make(chan struct{}, 8)
	wait := func(ctx context.Context) error {
		waits <- struct{}{}
		<-ctx.Done()
		return fmt.Errorf("cannot read the history: %w", ctx.Err())
	}
	socket := startServer(t, newServer(Options{
		Socket: filepath.Join(tempdir.New(t), "s"), Backend: &fake{history: wait, change: wait}, Logger: testLog(t),
	}, lim))
	codes := make(chan string, 8)
	for range 2 {
		go func() {
			_, err := control.Dial(socket).History(context.Background(), 1)
			codes <- codeOf(err)
		}()
		<-waits
	}
	if _, err := control.Dial(socket).Status(t.Context()); err != nil {
		t.Errorf("the status: %v", err)
	}
	if _, err := control.Dial(socket).History(t.Context(), 1); codeOf(err) != control.CodeBusy {
		t.Errorf("a request without a slot: %v", err)
	}
	go func() { // readers do not block an operator
		_, err := control.Dial(socket).Resume(context.Background())
		codes <- codeOf(err)
	}()
	<-waits
	for range 3 {
		if code := <-codes; code != control.CodeTimeout {
			t.Errorf("got %s", code)
		}
	}
}

func TestTheServerLimitsTheTimeOfTheBackend(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		d := &fake{change: func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }}
		s := New(Options{Backend: d})
		s.rules.self = 7
		start := time.Now()
		status, _ := handle(t, s, "DELETE", "/v1/pause", "", peer{uid: 7})
		if took := time.Since(start); status != http.StatusGatewayTimeout || took != 10*time.Second {
			t.Errorf("%d after %s", status, took)
		}
	})
}

func codeOf(err error) string {
	if e, ok := errors.AsType[*control.Error](err); ok {
		return e.Code
	}
	return fmt.Sprint(err)
}

func TestTheAnswerToAChangeWaitsUntilTheStatusShowsIt(t *testing.T) {
	t.Parallel()
	changed, shown := make(chan struct{}), make(chan struct{})
	d := &fake{
		change: func(context.Context) error { close(changed); return nil },
		probe: func(ctx context.Context) error {
			select {
			case <-shown:
			case <-ctx.Done():
			}
			return ctx.Err()
		},
	}
	c := control.Dial(serveBackend(t, d))
	answer := make(chan error, 1)
	go func() { _, err := c.Resume(context.Background()); answer <- err }()
	<-changed
	select {
	case err := <-answer:
		t.Fatalf("answered before the status shows the change: %v", err)
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
		s := New(Options{Backend: &fake{probe: func(ctx context.Context) error {
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
