// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package fileaccess

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/quorumd/quorumd/agent/config"
)

// TestMain also acts as the child that checks files.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == Command {
		if err := ChildMain(os.Args[2:], os.Stdin, os.Stdout); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

func write(t *testing.T, path, text string, mode os.FileMode) string {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), mode); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(path, mode); err != nil { // regardless of the umask
		t.Fatal(err)
	}
	return path
}

func TestKeyMustBeReadableByTheServicesUserOnly(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	passwd := write(t, filepath.Join(dir, "passwd"),
		"root:x:0:0::/:/bin/sh\nquorumd:x:990:990::/:/bin/false\nalice:x:1000:1000::/:/bin/sh\n"+
			"bob:x:1001:500::/:/bin/sh\nbad\nworse:x:y:z:\n", 0o600)
	group := write(t, filepath.Join(dir, "group"),
		"root:x:0:alice\nquorumd:x:990:\nquorumd-admin:x:991:alice\nusers:x:500:alice,quorumd\n"+
			"many:x:501:a,b,c,d,e\nbad\nworse:x:y:\n", 0o600)
	a, err := readAccounts(passwd, group)
	if err != nil {
		t.Fatal(err)
	}
	for what, c := range map[string]struct {
		mode os.FileMode
		gid  uint32
		want string // empty: no problem
	}{
		"readable by the owner":             {0o400, 990, ""},
		"writable by the owner":             {0o600, 990, ""},
		"readable by the owner's own group": {0o640, 990, ""},
		"readable by root's group":          {0o640, 0, ""},
		"not readable by its group":         {0o600, 991, ""},
		"world-readable":                    {0o644, 990, "is readable by every user on this host"},
		"world-writable":                    {0o602, 990, "readable by every user on this host"},
		"readable by the control group": {
			0o640, 991,
			"readable by the group quorumd-admin, which should reach etcd only through quorumd (control.group)",
		},
		"writable by the control group": {0o620, 991, "readable by the group quorumd-admin"},
		"readable by other users":       {0o640, 500, "readable by alice, bob, of the group users"},
		"readable by many":              {0o640, 501, "readable by a, b, c and 2 more, of the group many"},
	} {
		got := key{path: "/k", mode: c.mode, uid: 990, gid: c.gid}.problem("quorumd", "quorumd-admin", a)
		if c.want == "" && got != "" || !strings.Contains(got, c.want) {
			t.Errorf("%s: %q, want %q", what, got, c.want)
		}
		if got != "" && !strings.HasSuffix(got, "; run: chown quorumd: /k && chmod 0400 /k") {
			t.Errorf("%s: no command to fix it: %s", what, got)
		}
	}
}

func TestOtherUsersInTheGroupOfTheKeyAreReported(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	passwd := write(t, filepath.Join(dir, "passwd"), "quorumd:x:990:990::/:/bin/false\n", 0o600)
	group := write(t, filepath.Join(dir, "group"), "quorumd:x:990:carol\n", 0o600)
	a, err := readAccounts(passwd, group)
	if err != nil {
		t.Fatal(err)
	}
	got := key{path: "/k", mode: 0o640, gid: 990}.problem("quorumd", "quorumd-admin", a)
	if !strings.Contains(got, "readable by carol, of the group quorumd") {
		t.Errorf("got %q", got)
	}
}

// configuration writes a configuration with a key of that mode.
func configuration(t *testing.T, dir string, mode os.FileMode) string {
	t.Helper()
	key := write(t, filepath.Join(dir, "client.key"), "no key", mode)
	return write(t, filepath.Join(dir, "quorumd.yaml"), fmt.Sprintf(`
cluster: {name: prod, endpoints: ["https://192.0.2.1:2379"], tls: {cert: %[1]s, key: %[1]s}}
etcd: {clientURL: "https://192.0.2.1:2379", peerURL: "https://192.0.2.1:2380", environment: {
  ETCD_CERT_FILE: /c, ETCD_KEY_FILE: /k, ETCD_PEER_CERT_FILE: /c, ETCD_PEER_KEY_FILE: /k,
  ETCD_PEER_TRUSTED_CA_FILE: /a}}
paths: {state: %[2]s, runtime: %[2]s/none}
`, key, dir), 0o644)
}

func TestModeOfTheConfiguredKeyIsChecked(t *testing.T) {
	t.Parallel()
	for mode, open := range map[os.FileMode]bool{0o400: false, 0o600: false, 0o604: true} {
		c, err := config.Load(configuration(t, t.TempDir(), mode))
		if err != nil {
			t.Fatal(err)
		}
		if problems := CheckKey(c, "quorumd"); (len(problems) > 0) != open {
			t.Errorf("mode %o: %v", mode, problems)
		}
		c.Cluster.TLS.Key += ".none"
		if problems := CheckKey(c, "quorumd"); len(problems) > 0 {
			t.Errorf("a missing key: %v", problems)
		}
	}
}

func TestFileThatNoUnitReadsHasNoServiceUser(t *testing.T) {
	t.Parallel()
	for _, file := range []string{
		"quorumd.yaml", "/etc/quorumd.yaml", "/etc/quorumd/hooks/x.yaml",
		"/etc/quorumd/quorumd.yml", "/etc/quorumd/.yaml",
	} {
		if user := ServiceUser(t.Context(), file); user != "" {
			t.Errorf("%s: %s", file, user)
		}
	}
	if user := ServiceUser(t.Context(), "/etc/quorumd/no-such-instance.yaml"); user == "" {
		t.Error("a configuration in /etc/quorumd has no service user")
	}
}

func TestFilesHiddenFromTheServiceAreReported(t *testing.T) {
	t.Parallel()
	c := config.Config{Cluster: config.Cluster{TLS: &config.TLS{
		CA: "/etc/ssl/ca.pem", Cert: "/homes/q.crt",
		Key: "/root/q.key",
	}}}
	c.Metrics.WebConfig = "/var/tmp/web.yaml"
	got := strings.Join(Hidden(c), "\n")
	want := "metrics.webConfig: /var/tmp/web.yaml is in /var/tmp, which is hidden from the service"
	if !strings.Contains(got, want) {
		t.Errorf("no %q in %s", want, got)
	}
	if want := "cluster.tls.key: /root/q.key is in /root,"; !strings.Contains(got, want) ||
		strings.Contains(got, "tls.c") {
		t.Errorf("no %q, or more, in %s", want, got)
	}
}

func TestCheckAsAnUnknownUserFails(t *testing.T) {
	t.Parallel()
	if _, err := CheckAs(t.Context(), "/etc/quorumd/quorumd.yaml", "no-such-user"); !errors.Is(err, ErrNoUser) {
		t.Error(err)
	}
}

// TestCheckEndsIfTheChildNeverAnswers uses a FIFO to simulate a dead file server.
func TestCheckEndsIfTheChildNeverAnswers(t *testing.T) {
	t.Parallel()
	fifo := filepath.Join(t.TempDir(), "fifo")
	if err := unix.Mkfifo(fifo, 0o600); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := run(ctx, exec.CommandContext(t.Context(), "cat", fifo)); err == nil ||
		!strings.Contains(err.Error(), "access to a file hangs") {
		t.Error(err)
	}
}
