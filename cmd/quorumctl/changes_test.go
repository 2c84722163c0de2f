// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"encoding/json"
	"testing"

	"github.com/quorumd/quorumd/agent/control"
)

func TestChangesPrintResultAndNextCommand(t *testing.T) {
	t.Parallel()
	socket, _ := serve(t, scene(t, "paused"))
	got := transcript(t, socket,
		"bootstrap --yes", "bootstrap --yes -o json",
		"pause --reason 'swap disk' --for 90m", "pause --reason lunch -o yaml",
		"resume", "operation release --force --reason 'n4 is scrapped'")
	var done control.Done
	if err := json.Unmarshal([]byte(quorumctl(t, socket, "resume", "-o", "json").stdout), &done); err != nil {
		t.Fatal(err)
	}
	golden(t, "changes.golden", bytes.ReplaceAll(got, []byte(done.By), []byte("root"))) // the user who runs the test
}

func TestMistakesAreRefusedWithRemedy(t *testing.T) {
	t.Parallel()
	socket, _ := serve(t, scene(t, "steady"))
	golden(t, "mistakes.golden", transcript(t, socket,
		"stauts", "operation relaese", "frobnicate", "status now", "status --wach", "status -o xml",
		"status --color pink",
		"status --watch --interval 1ms", "history -n 0", "history -n 1001", "history -n many",
		"pause", "pause --reason ''", "pause --reason x --for 0s", "pause --reason x --for 200h",
		"pause --reason x --for later",
		"pause --reason 'two\tcells'", "operation release", "operation release --reason x",
		"operation release --force --reason ' '",
		"member remove", "member remove n3", "member remove n3 n4 --reason x", "member remove n3 --yes --reason ' '",
		"member remove n3 --reason x --timeout 2h",
		"maintenance of", "maintenance onn", "maintenance on",
		"maintenance on --reason ' '", "maintenance on --reason x --for 0s",
		"maintenance on --reason x --for -4h",
		"maintenance on --reason x --for 30s", "maintenance on --reason x --for 169h",
		"maintenance on --reason x --wait=-1s",
		"maintenance on --reason x --wait --no-wait", "maintenance off now",
		"maintenance off --wait=-1s",
		"cycle reboot", "cycle --for 1s", "cycle --reboot -- true", "cycle --no-wait -- true", "cycle -o json -- true",
		"cycle --keep-down-on-failure",
		"cycle -- no-such-command", "cycle -- /etc/passwd",
		"rollout strat", "rollout start", "rollout start maintenance --reason x", "rollout start command --reason x",
		"rollout start command a b --reason x",
		"rollout start command ../sh --yes --reason x", "rollout start command a.sh --yes --reason x",
		"cycle --command a/b",
		"cycle --command a --reboot", "cycle --command a -- true", "rollout start restart",
		"rollout start restart --yes --reason x --hosts n1,n1",
		"rollout start restart --yes --reason x --hosts n1,",
		"rollout start restart --yes --reason x --until-version newest",
		"rollout pause", "rollout status --watch --interval 1ms",
		"wait --for godot", "wait --timeout 0s", "config check a b"))
}

func TestExitCodesOfBackendErrors(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		err  control.Error
		code int
	}{
		{control.Error{
			Status: 409, Code: "DATA_DIR_IN_USE",
			Message: "cannot bootstrap: the data directory is not empty", Hint: "move it aside",
		}, exitFault},
		{
			control.Error{Status: 503, Code: "ETCD_UNAVAILABLE", Message: "cannot pause: etcd does not answer"},
			exitUnavailable,
		},
		{control.Error{Status: 403, Code: "OBSERVE", Message: "cannot act in mode observe"}, exitPermission},
		{control.Error{Status: 400, Code: "ODD", Message: "no"}, exitUsage},
		{control.Error{Status: 500, Code: "INTERNAL", Message: "no"}, exitFault},
	} {
		d := scene(t, "steady")
		d.fail = &c.err
		socket, _ := serve(t, d)
		for _, line := range []string{
			"bootstrap --yes", "pause --reason x", "resume", "operation release --force --reason x",
			"history",
		} {
			r := quorumctl(t, socket, splitLine(line)...)
			if r.code != c.code || r.stdout != "" {
				t.Errorf("%s, %s: exit %d, want %d; %s%s", c.err.Code, line, r.code, c.code, r.stdout, r.stderr)
			}
		}
	}
	d := scene(t, "steady")
	d.fail = &control.Error{Status: 409, Code: "X", Message: "the quota is used up", Hint: "raise the quota"}
	socket, _ := serve(t, d)
	r := quorumctl(t, socket, "resume")
	if r.stderr != "quorumctl: cannot resume: the quota is used up\n→ raise the quota\n" {
		t.Errorf("got %s", r.stderr)
	}
}

func TestExitCodesOfTheSocket(t *testing.T) {
	t.Parallel()
	for code, want := range map[string]int{
		control.CodeUnreachable: 69, control.CodeTimeout: 69, control.CodeBusy: 69, control.CodeNotPermitted: 77,
		control.CodeBadRequest: 64, control.CodeTooLarge: 64, control.CodeConflict: 70, control.CodeNotFound: 70,
		control.CodeInternal: 70,
	} {
		if got := exitCode(&control.Error{Code: code}); got != want {
			t.Errorf("%s: got %d, want %d", code, got, want)
		}
	}
}

func TestCommandsReportUnreachableDaemon(t *testing.T) {
	t.Parallel()
	socket := t.TempDir() + "/s"
	for _, line := range []string{"status", "history", "pause --reason x", "status --watch"} {
		t.Run(line, func(t *testing.T) {
			t.Parallel()
			want := "quorumctl: cannot reach quorumd at " + socket +
				": connect: no such file or directory\n→ is it running? systemctl status quorumd\n"
			if r := quorumctl(t, socket, splitLine(line)...); r.code != exitUnavailable || r.stderr != want ||
				r.stdout != "" {
				t.Errorf("exit %d: %s%s", r.code, r.stdout, r.stderr)
			}
		})
	}
}

func TestInaccessibleSocketIsAPermissionError(t *testing.T) {
	t.Parallel()
	f := cannot("read the status", &control.Error{
		Code:    control.CodeNotPermitted,
		Message: "cannot reach quorumd at /s: permission denied",
	})
	if f.code != exitPermission {
		t.Errorf("got %#v", f)
	}
}
