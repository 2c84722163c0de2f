// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/quorumd/quorumd/agent/config"
)

func TestHelpOfEveryCommand(t *testing.T) {
	t.Parallel()
	help := transcript(t, "SOCKET", "", "status --help", "health --help", "health mute --help",
		"health unmute --help", "explain --help", "history --help", "codes --help", "qualify --help",
		"support-bundle --help",
		"bootstrap --help", "pause --help", "resume --help", "operation", "operation show --help",
		"operation release --help",
		"maintenance", "maintenance on --help", "maintenance off --help", "maintenance status --help", "cycle --help",
		"rollout", "rollout start --help", "rollout status --help", "rollout pause --help", "rollout resume --help",
		"rollout abort --help",
		"member", "member list --help", "member remove --help", "member add --help", "member promote --help",
		"snapshot", "snapshot save --help", "snapshot list --help", "snapshot verify --help", "snapshot prune --help",
		"snapshot test-restore --help", "snapshot restore --help",
		"wait --help", "init --help", "config", "config check --help", "config show --help", "config default --help",
		"pki", "pki init --help", "pki host --help", "pki renew --help", "pki status --help", "pki install --help",
		"pki trust --help", "pki rotate", "pki rotate begin --help", "pki rotate next --help",
		"pki rotate undo --help",
		"pki rotate status --help",
		"schema --help", "version --help", "recover", "recover collect --help", "recover plan --help",
		"recover apply --help", "recover give-up --help", "recover status --help")
	golden(t, "help.golden", help)
	for line := range strings.Lines(string(help)) {
		if n := utf8.RuneCountInString(line); n > columns+1 {
			t.Errorf("%d columns: %s", n-1, line)
		}
	}
}

func TestShellCompletion(t *testing.T) {
	t.Parallel()
	for _, shell := range []string{"bash", "zsh", "fish", "powershell"} {
		if r := quorumctl(t, "SOCKET", "completion", shell); r.code != exitOK ||
			!strings.Contains(r.stdout, "quorumctl") {
			t.Errorf("%s: exit %d: %s", shell, r.code, r.stderr)
		}
	}
	if r := quorumctl(t, "SOCKET", "completion", "foo"); r.code != exitUsage || r.stdout != "" ||
		!strings.Contains(r.stderr, `unknown command "foo"`) {
		t.Errorf("no shell: exit %d: %s%s", r.code, r.stdout, r.stderr)
	}
	golden(t, "complete.golden", transcript(t, "SOCKET",
		"__complete w", "__complete status --output ''", "__complete status --color ''", "__complete wait --for ''",
		"__complete rollout start ''", "__complete pause --for 3",
		"__complete maintenance on --for ''"))
	for line, want := range map[string]string{
		"__complete explain ''": "\nNO_QUORUM\n", "__complete health ''": "\nDISK_FSYNC_SLOW\n",
		"__complete health mute ''": "\nDISK_FSYNC_SLOW\n", "__complete schema ''": "\nhistory\n",
	} {
		if r := quorumctl(t, "SOCKET", splitLine(line)...); !strings.Contains(r.stdout, want) {
			t.Errorf("%s offers\n%s", line, r.stdout)
		}
	}
	socket, _ := serve(t, scene(t, "steady"))
	golden(t, "complete-hosts.golden", transcript(t, socket,
		"__complete rollout start restart --hosts ''", "__complete rollout start restart --hosts n1,n3,",
		"__complete explain n1 ''"))
	if r := quorumctl(t, socket, "__complete", "explain", ""); !strings.HasPrefix(r.stdout, "n1\nn2\nn3\nn4\n") ||
		!strings.Contains(r.stdout, "\nNO_QUORUM\n") {
		t.Errorf("explain offers\n%s", r.stdout)
	}
}

func TestCompletionWithoutQuorumd(t *testing.T) {
	t.Parallel()
	facts, authority := writeSurvivorFacts(t), filepath.Join(t.TempDir(), "pki")
	quorumctl(t, "SOCKET", "pki", "init", "--dir", authority)
	for _, name := range []string{"n2", "n1"} {
		quorumctl(t, "SOCKET", "pki", "host", name, "127.0.0.1", "--dir", authority)
	}
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"recover", "plan", facts, "--gone", ""}, "n2\nn3\n:"},
		{[]string{"recover", "plan", facts, "--gone", "n2,"}, "n2,n3\n:"},
		{[]string{"recover", "plan", facts, "/nowhere.json", "--survivor", ""}, "n1\n:"},
		{[]string{"pki", "renew", "--dir", authority, ""}, "n1\nn2\n:"},
		{[]string{"pki", "renew", "--dir", authority, "n1", ""}, ":"},
		{[]string{"pki", "renew", "--dir", "/nowhere", ""}, ":"},
		{[]string{"pki", "rotate", "next", "--dir", authority, "--without", "n1,"}, "n1,n2\n:"},
	} {
		if r := quorumctl(t, "/nowhere", append([]string{"__complete"}, c.args...)...); r.code != exitOK ||
			!strings.HasPrefix(r.stdout, c.want) {
			t.Errorf("%v offers\n%s%s", c.args, r.stdout, r.stderr)
		}
	}
}

// program returns the path of an existing program.
func program(t *testing.T) string {
	t.Helper()
	path, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return path
}

func TestConfigCheck(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	valid, odd, wrong := filepath.Join(dir, "good.yaml"), filepath.Join(dir, "odd.yaml"), filepath.Join(dir, "bad.yaml")
	base := "cluster:\n  name: prod\n  endpoints: [http://127.0.0.1:2379]\netcd:\n  clientURL: " +
		"http://127.0.0.1:2379\n  peerURL: http://127.0.0.1:2380\n  runner: process\n  binary: " +
		program(t) + "\nhost:\n  id: n1\n"
	for file, text := range map[string]string{
		valid: base,
		odd:   strings.Replace(base, "name: prod\n", "name: prod\n  voters: 9\n", 1),
		wrong: strings.Replace(base, "name: prod\n", "name: prod\n  voters: 4\n  nmae: x\n", 1) +
			"metrics:\n  listen: nowhere\n",
	} {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if r := quorumctl(t, "SOCKET", "config", "check", "-o", "wide", valid); r.code != exitOK ||
		r.stdout != valid+": OK\n" || r.stderr != "" {
		t.Errorf("a good file: exit %d: %s%s", r.code, r.stdout, r.stderr)
	}
	if r := quorumctl(t, "SOCKET", "config", "check", odd); r.code != exitOK ||
		!strings.Contains(r.stdout, "warning: ") {
		t.Errorf("an odd file: exit %d: %s%s", r.code, r.stdout, r.stderr)
	}
	r := quorumctl(t, "SOCKET", "config", "check", wrong)
	for _, want := range []string{
		"quorumctl: cannot use " + wrong + ": 3 mistakes\n", wrong + ":3: ", wrong + ":4: ",
		wrong + ":14: ", "\n→ ",
	} {
		if r.code != exitConfig || r.stdout != "" || !strings.Contains(r.stderr, want) {
			t.Errorf("a bad file: exit %d without %q: %s%s", r.code, want, r.stdout, r.stderr)
		}
	}
	if r := quorumctl(t, "SOCKET", "config", "check", filepath.Join(dir, "none")); r.code != exitConfig ||
		!strings.HasPrefix(r.stderr, "quorumctl: cannot ") {
		t.Errorf("a missing file: exit %d: %s", r.code, r.stderr)
	}
	var closed *failure // made by hand, because root can read every file
	if err := configFailure(wrong, "", &fs.PathError{Op: "open", Path: wrong, Err: fs.ErrPermission}); !errors.As(err,
		&closed) || closed.code != exitPermission {
		t.Errorf("a closed file: %v", err)
	}
}

func TestConfigCheckReadsCertificatesByDefault(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "q.yaml")
	text := "cluster:\n  name: prod\n  endpoints: [https://192.0.2.1:2379]\n  tls:\n    ca: /nowhere/ca.pem\n" +
		"etcd:\n  clientURL: https://192.0.2.1:2379\n  peerURL: https://192.0.2.1:2380\n"
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if r := quorumctl(t, "SOCKET", "config", "check", file); r.code != exitConfig ||
		!strings.Contains(r.stderr, "/nowhere/ca.pem") {
		t.Errorf("exit %d: %s%s", r.code, r.stdout, r.stderr)
	}
	if r := quorumctl(t, "SOCKET", "config", "check", "--elsewhere", file); r.code != exitOK {
		t.Errorf("exit %d: %s%s", r.code, r.stdout, r.stderr)
	}
}

func TestConfigDefault(t *testing.T) {
	t.Parallel()
	if r := quorumctl(t, "SOCKET", "config", "default"); r.code != exitOK || r.stdout != string(config.Default()) {
		t.Errorf("exit %d: %s", r.code, r.stderr)
	}
}

func TestVersionShowsBoth(t *testing.T) {
	t.Parallel()
	socket, stop := serve(t, scene(t, "steady"))
	if r := quorumctl(t, socket, "version"); r.code != exitOK || !strings.HasSuffix(r.stdout, "\nquorumd   0.1.0\n") {
		t.Errorf("exit %d: %s%s", r.code, r.stdout, r.stderr)
	}
	stop()
	if r := quorumctl(t, socket, "version"); r.code != exitOK ||
		!strings.HasSuffix(r.stdout, "\nquorumd   no answer at "+socket+"\n") {
		t.Errorf("exit %d: %s%s", r.code, r.stdout, r.stderr)
	}
}

// brokenWriter is an output whose writes fail.
type brokenWriter struct{}

func (brokenWriter) Write([]byte) (int, error) { return 0, os.ErrClosed }

func TestWriteFailureIsReported(t *testing.T) {
	t.Parallel()
	socket, _ := serve(t, scene(t, "steady"))
	for _, line := range []string{"status", "status -o json", "config default", "status --watch"} {
		var errOut bytes.Buffer
		code := run(t.Context(), append([]string{"--socket", socket}, splitLine(line)...), brokenWriter{}, &errOut)
		if code != exitFault || !strings.HasPrefix(errOut.String(), "quorumctl: cannot write the output: ") {
			t.Errorf("%s: exit %d: %s", line, code, &errOut)
		}
	}
}
